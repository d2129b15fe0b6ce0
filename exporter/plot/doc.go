// Package plot draws a record of ticks as one picture, SVG or PNG: CPU by mode, packets, drops
// and how late ticks were. In: objects of exporter/follow. Out: a picture.
//
// Where there are more ticks than columns of the picture, a column shows the lowest
// and the highest of its ticks, so that no burst is smoothed away.
package plot
