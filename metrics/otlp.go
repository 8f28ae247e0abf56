package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Push sends gauges to an OpenTelemetry collector now and then, over HTTP.
type Push struct{ provider *sdk.MeterProvider }

// NewPush begins to send the gauges to an endpoint, a URL such as http://localhost:4318/v1/metrics; "" takes what the variables of
// OpenTelemetry say (OTEL_EXPORTER_OTLP_ENDPOINT and its kin, which also set headers and timeouts). Attributes tell participants
// apart: the run and the member's key. A collector that cannot be reached costs nothing but a line in the log.
func NewPush(ctx context.Context, g *Gauges, endpoint, run, key string, every time.Duration, log *slog.Logger) (*Push, error) {
	var opts []otlpmetrichttp.Option
	if endpoint != "" {
		opts = append(opts, otlpmetrichttp.WithEndpointURL(endpoint))
	}
	exporter, err := otlpmetrichttp.New(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("send metrics to an OpenTelemetry collector: %w", err)
	}
	reader := sdk.NewPeriodicReader(&telling{Exporter: exporter, log: log}, sdk.WithInterval(every))
	provider := sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "entrain"), attribute.String("entrain.run", run), attribute.String("entrain.member", key))))
	meter := provider.Meter("github.com/entrain-network/entrain")
	g.watchNames(func(name string) {
		_, err := meter.Float64ObservableGauge(name, metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(g.value(name))
			return nil
		}))
		if err != nil {
			log.Error("a measurement has no OpenTelemetry gauge", "name", name, "error", err)
		}
	})
	return &Push{provider}, nil
}

// Close sends what there is, within the time of ctx, and ends.
func (p *Push) Close(ctx context.Context) error { return p.provider.Shutdown(ctx) }

// telling is an exporter that tells the log of a failure, once until it has succeeded again, instead of the process's standard error.
type telling struct {
	sdk.Exporter
	log *slog.Logger

	mu     sync.Mutex // guards failed
	failed bool
}

// Export sends the measurements.
func (t *telling) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	err := t.Exporter.Export(ctx, m)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && !t.failed {
		t.log.Warn("metrics do not reach the OpenTelemetry collector", "error", err)
	}
	t.failed = err != nil
	return nil
}
