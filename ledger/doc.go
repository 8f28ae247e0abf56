// Package ledger is a participant's access to a chain that hosts coordinators.
//
// Ledger reads runs and acts for one key. Chain is what tools ask beyond that: accounts, pools,
// runs, replicas. Package ledger/mem implements them in memory, for simulation and tests; package
// ledger/comet over the API of a BFT chain. What the chain does with a body that it accepts is up
// to package host.
//
// A ledger encodes and signs bodies in its chain's own way. Those whose chain takes host.Tx need
// only bring signed transactions to it, as a Sender: As signs for them.
package ledger
