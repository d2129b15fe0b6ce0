// Package fleet knows the devices that push: who, since when, when last, from where,
// with what.
//
// In come pushes, as adapter/receive saw them; out go GET /api/v1/devices, metrics
// for each device, and a file in the data directory from which the devices are known
// again after a restart. A device stays known while it is silent.
//
// It never stores samples and never takes a client's words further than they are
// long: what clients say is cut where it is kept, and encoded where it is shown.
package fleet
