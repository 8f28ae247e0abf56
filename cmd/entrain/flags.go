package main

import (
	"fmt"
	"log/slog"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/entrain-network/entrain/engine/vulkan"
	"github.com/entrain-network/entrain/participant"
)

// A flag of one name means one thing in all commands. Those of several commands are made here.

// jsonFlag adds --json.
func jsonFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print JSON")
}

// outputFlag adds --output.
func outputFlag(cmd *cobra.Command, to *string, what string) {
	cmd.Flags().StringVarP(to, "output", "o", "", "`path` of the "+what+" to make")
	_ = cmd.MarkFlagFilename("output")
}

// addrFlag adds --addr of a server.
func addrFlag(cmd *cobra.Command, to *string, def string) {
	cmd.Flags().StringVar(to, "addr", def, "`HOST:PORT` to serve at; port 0 is a free one")
}

// workersFlag adds --workers.
func workersFlag(cmd *cobra.Command, to *int) {
	cmd.Flags().IntVar(to, "workers", runtime.GOMAXPROCS(0), "`number` of goroutines that compute; changes the speed, never the result")
}

// deviceFlag adds --device.
func deviceFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "device", vulkan.CPU, "`device` that computes gradients: cpu, vulkan:N, a GPU as entrain bench --device list shows it, several as vulkan:0,vulkan:1,\nor auto, the fastest that proves on this machine that it computes the same bits")
	_ = cmd.RegisterFlagCompletionFunc("device", cobra.FixedCompletions([]string{vulkan.CPU, vulkan.Auto, "vulkan:0"}, cobra.ShellCompDirectiveNoFileComp))
}

// textDeviceFlag adds --device of a command that writes or scores texts.
func textDeviceFlag(cmd *cobra.Command, to *string) {
	deviceFlag(cmd, to)
	cmd.Flags().Lookup("device").Usage = "`device` that computes, as in entrain join; the result is the same"
}

// plainFlag adds --plain.
func plainFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "plain", false, "print lines, also on a terminal")
}

// logFlag adds --log.
func logFlag(cmd *cobra.Command, to *participant.Logging) {
	to.Level = slog.LevelWarn
	cmd.Flags().Var(to, "log", "least `level` of the structured log on standard error: debug, info, warn or error; info,json\nwrites it as JSON")
}

// dataFlag adds --data.
func dataFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "data", "", "`directory` of the prepared data, or its https:// or s3:// address (default: as the run's specification says)")
	_ = cmd.MarkFlagDirname("data")
}

// fromFlag adds --from.
func fromFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "from", "", "`checkpoint` that the run continues from: a directory, a state directory, or an s3://, hf:// or https:// address")
	_ = cmd.MarkFlagDirname("from")
}

// specFlag adds --file.
func specFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVarP(to, "file", "f", "", "specification `file`, TOML")
	_ = cmd.MarkFlagFilename("file", "toml")
}

// stateFlag adds --state.
func stateFlag(cmd *cobra.Command, to *string, def string) {
	cmd.Flags().StringVar(to, "state", "", "state `directory` of a participant (default: "+def+")")
	_ = cmd.MarkFlagDirname("state")
}

// reachFlags adds the flags of how others reach this machine.
func reachFlags(cmd *cobra.Command, r *participant.Reaching) {
	cmd.Flags().StringArrayVar(&r.Listen, "listen", nil, "`address` for peers, IP:PORT or a multiaddr; may be repeated (default: all of this machine's, any free port)")
	cmd.Flags().StringVar(&r.PublicIP, "public-ip", "", "public `IP` that forwards the ports of --listen to this machine, as routers and most clouds do")
}

// privateFlag adds --private-buckets.
func privateFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "private-buckets", false, "read miners' buckets at addresses of this machine and of private networks as well")
}

// joinGroups are the flags of a command that has many, by what they are about; the rest comes last.
var joinGroups = []struct {
	title string
	flags []string
}{
	{"The run and you", []string{"chain", "key", "data", "state", "from", "delegation", "check"}},
	{"This machine", []string{"device", "workers", "limit-cores", "limit-memory", "limit-upload"}},
	{"Reaching others", []string{"listen", "public-ip", "relay", "no-relay", "linger"}},
	{"Buckets", []string{"bucket", "bucket-read", "private-buckets"}},
	{"Stake", []string{"stake", "pool"}},
	{"The model along the run", []string{"evaluate", "sample", "task", "checkpoints", "upload"}},
}

// usageByGroup prints a command's usage with its flags in groups.
func usageByGroup(cmd *cobra.Command) error {
	w, rest := cmd.OutOrStderr(), pflag.NewFlagSet("", pflag.ContinueOnError)
	fmt.Fprintf(w, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
	cmd.LocalFlags().VisitAll(rest.AddFlag)
	grouped := map[string]bool{}
	for _, g := range joinGroups {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		for _, name := range g.flags {
			if f := cmd.LocalFlags().Lookup(name); f != nil {
				set.AddFlag(f)
				grouped[name] = true
			}
		}
		fmt.Fprintf(w, "\n%s:\n%s", g.title, set.FlagUsages())
	}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	rest.VisitAll(func(f *pflag.Flag) {
		if !grouped[f.Name] {
			set.AddFlag(f)
		}
	})
	_, err := fmt.Fprintf(w, "\nOutput:\n%s", set.FlagUsages())
	return err
}
