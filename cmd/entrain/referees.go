package main

import "github.com/entrain-network/entrain/ledger"

// referees judge the disputes of the runs that this program's replicas host.
var referees ledger.Referees
