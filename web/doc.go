// Package web shows runs in a browser: it serves pages that follow a chain live, and read-only. An
// Ear adds the losses that members state and sign. A participant's state directory adds the past,
// held-out losses, checkpoints, and a model that continues a prompt.
//
//	server := web.New(web.Options{Ledger: client, Runs: names})
//	err := server.Run(ctx, listener)
//
// Everything the pages need is embedded and served from here; nothing is fetched from elsewhere,
// and the content policy forbids it. There is no build step: assets/ holds one page, whose script
// is made of small modules.
//
// # Where the data comes from
//
//	ledger.Watch ─► runlog.Digest ─┬─► view.Fold ─► desk, one for each run ─► JSON, events
//	a participant's log, or an Ear ┘
//
// The chain itself keeps four rounds. Older ones are those that this server has seen since it
// started, or that the participant's log has. All of it is bounded (package view), and curves are
// downsampled.
//
// # What pages ask for
//
//	GET  /api/runs                                   all runs in short
//	GET  /api/names                                  what keys of these runs are called
//	GET  /api/runs/RUN                               the overview: live
//	GET  /api/runs/RUN/events                        the same as it changes (events.go)
//	GET  /api/runs/RUN/members                       a part of the table: sort, up, find, status,
//	                                                 from, count
//	GET  /api/runs/RUN/members/KEY                   its work and pay
//	GET  /api/runs/RUN/rounds?from=&count=           a part of the table, newest first
//	GET  /api/runs/RUN/rounds/NUMBER?from=&count=    hashes, witnesses, and a part of the results
//	GET  /api/runs/RUN/trust                         checks, disputes with their moves, convictions
//	GET  /api/runs/RUN/scores                        windows, validators, scores, pay
//	GET  /api/runs/RUN/samples                       texts that the model wrote along the run
//	GET  /api/runs/RUN/join                          the steps to join
//	GET  /api/runs/RUN/curves.csv
//	GET  /api/runs/RUN/checkpoints, .../checkpoints/NAME/FILE
//	POST /api/runs/RUN/prompt                        a Prompt; answers text as it is written
//
// An error is {"error": "..."}.
//
// # Safety
//
// A server that listens on the loopback interface refuses requests that name another host, and the
// one POST refuses other origins, so that pages elsewhere can neither read nor ask. Where it
// listens wider, everybody who reaches it may look on and ask the model, one at a time.
package web
