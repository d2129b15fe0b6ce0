// Package top shows the ticks of a running exporter in a terminal: for each CPU and
// each interface the lowest, mean and highest tick of the last second, and a line of
// marks, one a tick. In: objects of exporter/follow. Out: text, a screen a second.
package top
