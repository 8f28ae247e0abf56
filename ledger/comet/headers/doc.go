// Package headers is about the headers of a chain, signed by its replicas: which ones a client may
// trust because of those that it trusts already ([Trust]), and which ones a replica keeps to lead
// clients from the one to the other ([Kept]).
package headers
