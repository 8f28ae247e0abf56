// Package study holds the measurements that the documentation quotes: what models learn by each
// way of training together ([MeasureLearning], docs/learning.md) and from slices
// ([MeasureSlices]), what unchecked liars do to training ([MeasureRobust]), and what disputes and
// scores cost ([MeasureDispute], [MeasureScoring]). What miners earn is in package market.
//
// Learning results are functions of their options: the same on every machine, to the last bit.
package study
