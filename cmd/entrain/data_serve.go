package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/data"
)

func dataServeCommand(c console) *cobra.Command {
	var listen string
	var verify bool
	cmd := &cobra.Command{
		Use:   "serve DIR",
		Short: "Offer a data set over HTTP",
		Long: `Offers a data set to participants over HTTP. They give its address as --data and read the pieces they need,
each of which they compare with the manifest: they need not trust this host. A static web server or an object
store that has the files of the directory does the same. They join with

  entrain join my-run --data http://203.0.113.5:7380`,
		Example: "  entrain data serve ./corpus --listen 0.0.0.0:7380",
		Args:    needDir,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := data.ReadManifest(args[0])
			if err != nil {
				return err
			}
			if verify {
				if err := verifyData(cmd.Context(), args[0], m); err != nil {
					return err
				}
			}
			l, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", listen)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "http://%s\n", l.Addr())
			c.say("offering data set %q, manifest %s; Ctrl-C ends", m.Name, m.Hash())
			return serveUntil(cmd.Context(), l, data.Handler(args[0], m))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:7380", "`address` to listen at")
	cmd.Flags().BoolVar(&verify, "verify", false, "read and verify every shard first")
	return cmd
}

// serveGrace is how long answers that are being sent may take to end after Ctrl-C.
const serveGrace = 5 * time.Second

// serveUntil serves HTTP until ctx ends.
func serveUntil(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), serveGrace)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-ended
	return err
}
