// Package coordinator is a run's replicated state machine: from messages, time and chance it decides who takes part, who
// trains on what, whose results enter the model, which parameters are agreed, and who is paid. It never sees a tensor. Hosts
// apply the same messages in the same order and get the same bytes.
package coordinator
