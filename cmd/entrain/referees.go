package main

import (
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/verify"
)

// referees judge the disputes of the runs that this program's replicas host.
var referees host.Referees = verify.NewReferee
