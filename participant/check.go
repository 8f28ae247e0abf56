package participant

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// CheckOptions describe a machine that may take part in a run; the fields are as in Options.
type CheckOptions struct {
	Target     onchain.Target
	Endpoints  []string
	Key        key.Public
	Data       string // as in participation
	Stake      uint64 // tokens to put up; 0: the run's least stake
	Pool       string
	Memory     uint64
	Delegation string // text or file, "" if the key works for itself
	State      string // directory, which need not exist
	Mining     Mining

	Checkpoints int

	Remember string
	Program  string
	Getenv   func(string) string
}

// Report is the outcome of a check.
type Report struct {
	Run       string        `json:"run"`
	Chain     string        `json:"chain"`
	Key       string        `json:"key"`
	Can       bool          `json:"can"`
	Finished  bool          `json:"finished,omitempty"`
	Obstacles []Obstacle    `json:"obstacles"`
	Needs     trainer.Sizes `json:"needs"`
	Accuser   *Accuser      `json:"accuser,omitempty"` // in a run on Solana that checks results
}

// Accuser is what a member needs to accuse another one, in lamports, which come back when the
// dispute ends, and what it has. With less it accuses nobody.
type Accuser struct {
	Needs   uint64 `json:"needs"`
	Has     uint64 `json:"has"`
	Address string `json:"address"` // to send some to
}

func (a Accuser) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "to prove that a member cheats takes up to %.1f SOL, which come back when the dispute ends", float64(a.Needs)/1e9)
	if err == nil && a.Has < a.Needs {
		_, err = fmt.Fprintf(w, ": %s has %.3f, and accuses nobody until it has more", a.Address, float64(a.Has)/1e9)
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

// Write prints that the machine can take part, or each reason why not, and what accusing takes.
func (r Report) Write(w io.Writer) error {
	if r.Can && r.Finished {
		_, err := fmt.Fprintf(w, "yes: run %q has finished; as a member, this machine can serve its model to others\n", r.Run)
		return err
	}
	if r.Can {
		_, err := fmt.Fprintf(w, "yes: this machine can take part in run %q on chain %q: %s parameters, about %s of memory, %s to fetch\n",
			r.Run, r.Chain, view.Thousands(r.Needs.Parameters), view.Bytes(r.Needs.Memory), view.Bytes(r.Needs.Model))
		if err != nil {
			return err
		}
	}
	for _, no := range r.Obstacles {
		if _, err := fmt.Fprintf(w, "no: %s\n", no.Reason); err != nil {
			return err
		}
	}
	if r.Accuser != nil {
		return r.Accuser.write(w)
	}
	return nil
}

// Check reports whether the machine and the key can take part in the run now, and if not, each
// reason why. It changes nothing.
func (o CheckOptions) Check(ctx context.Context) (r Report, err error) {
	r = Report{Run: o.Target.Run, Key: o.Key.String(), Obstacles: []Obstacle{}}
	client, err := onchain.Dial(ctx, o.Endpoints, onchain.DialOptions{Remember: o.Remember})
	if err != nil {
		return r, err
	}
	defer client.Close()
	r.Chain = client.ChainID()
	add := func(kind string, err error) {
		r.Obstacles = append(r.Obstacles, Obstacle{Kind: kind, Reason: err.Error()})
	}
	on, err := onchain.GetRun(ctx, client, o.Target.Run)
	if err == nil {
		err = o.Target.Check(client.ChainID(), on.Snapshot.State.ID())
	}
	if err != nil {
		add(obstacleRun, err)
		return r, nil
	}
	if r.Needs, err = trainer.SizesOf(on.Spec); err != nil {
		add(obstacleRun, err)
		return r, nil
	}
	r.Finished = on.Snapshot.State.Phase() == coordinator.Finished
	if o.Stake == 0 {
		o.Stake = on.Spec.Trust.Stake
	}
	a := Applicant{Key: o.Key, stake: o.Stake, pool: o.Pool, memory: memoryLimit(o.Memory, MemoryFree()), Skew: onchain.ClockSkew(o.Endpoints), program: o.Program, state: o.State, disk: diskRoom(o.State), checkpoints: o.Checkpoints}
	if o.Delegation != "" {
		d, err := readDelegation(o.Delegation, client.ChainID(), o.Target.Run, o.Key)
		if err != nil {
			add(ObstacleListed, err)
		}
		a.owner = d.Certificate.Owner
	}
	list, err := a.Obstacles(ctx, client, on)
	if err != nil {
		return r, err
	}
	r.Obstacles = append(r.Obstacles, list...)
	if on.Snapshot.State.Config().VerificationPercent > 0 && onchain.OnSolana(o.Endpoints) {
		account, err := client.Account(ctx, o.Key)
		if err != nil {
			return r, err
		}
		r.Accuser = &Accuser{solana.AccuserLamports, account.Lamports, account.Address}
	}
	if err := o.dataToBeHad(ctx, on); err != nil {
		add(obstacleData, err)
	}
	if on.Spec.Buckets() {
		if err := o.Mining.Try(ctx, o.Getenv); err != nil {
			add(obstacleBucket, err)
		}
	}
	if err := trainer.SelfTest(ctx, cpu.Options{Workers: runtime.GOMAXPROCS(0)}); err != nil {
		add(obstacleArithmetic, err)
	}
	r.Can = len(r.Obstacles) == 0
	return r, nil
}

// dataToBeHad opens the run's data as New does.
func (o CheckOptions) dataToBeHad(ctx context.Context, on onchain.Run) error {
	at, err := o.Target.DataOf(o.Data, on, o.Endpoints)
	if err != nil {
		return err
	}
	manifest, err := wire.ParseHash(on.Spec.Data.Manifest)
	if err != nil {
		return fmt.Errorf("the run's data.manifest: %w", err)
	}
	set, err := trainer.OpenData(ctx, at, manifest, data.Options{SequenceTokens: uint32(on.Spec.Data.Sequence), Seed: on.Spec.DataSeed(), First: on.Spec.First()})
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	set.Close()
	return nil
}
