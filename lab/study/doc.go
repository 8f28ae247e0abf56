// Package study holds the measurements that the documentation quotes: learning with each codec
// ([MeasureLearning], docs/learning.md) and with slices ([MeasureSlices]), training among unchecked
// liars ([MeasureRobust]), and the cost of disputes and scores ([MeasureDispute],
// [MeasureScoring]). Package market measures the pay of miners.
//
// Learning results are functions of their options: the same on every machine, to the last bit.
package study
