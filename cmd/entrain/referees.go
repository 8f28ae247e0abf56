package main

import (
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/verify"
)

// referees judge the disputes of the runs that this program's replicas host.
var referees ledger.Referees = verify.NewReferee
