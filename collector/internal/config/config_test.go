package config

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"connlab/collector/internal/capture"
	"connlab/collector/internal/metrics"
	"connlab/collector/internal/names"
)

func environment() map[string]string {
	return map[string]string{
		"CONNLAB_ROLE": "backend-1", "CONNLAB_RATE_HZ": "10", "CONNLAB_CAPTURE": "headers", "CONNLAB_CAPTURE_MAX_MB": "256",
		"CONNLAB_READY_URL": "http://127.0.0.1:8081/actuator/health",
		"CONNLAB_SCRAPE":    "tomcat=http://127.0.0.1:8081/actuator/tomcat  jvm=http://127.0.0.1:8081/jvm?x=1",
	}
}

func TestTheEnvironmentIsRead(t *testing.T) {
	variables := environment()
	got, err := FromEnvironment(func(name string) string { return variables[name] })
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Role: "backend-1", RateHz: 10, ReadyURL: "http://127.0.0.1:8081/actuator/health",
		Scrapes: []Scrape{{"tomcat", "http://127.0.0.1:8081/actuator/tomcat"}, {"jvm", "http://127.0.0.1:8081/jvm?x=1"}},
		Capture: capture.Headers, CaptureBytesMax: 256 << 20, Interface: "eth0", Names: names.Table{},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheDeadlineIsInSeconds(t *testing.T) {
	variables := environment()
	variables["CONNLAB_DEADLINE_S"] = "90"
	got, err := FromEnvironment(func(name string) string { return variables[name] })
	if err != nil || got.Deadline != 90*time.Second {
		t.Errorf("got %v, %v", got.Deadline, err)
	}
}

func TestMetricsBearTheInstanceAndTheLabelsThatAreGiven(t *testing.T) {
	variables := environment()
	variables["CONNLAB_METRICS"], variables["CONNLAB_METRICS_LABELS"] = "0.0.0.0:9645", "run=20261124T002426Z-default-r01  role=backend"
	got, err := FromEnvironment(func(name string) string { return variables[name] })
	if err != nil {
		t.Fatal(err)
	}
	want := []metrics.Label{{Name: "instance", Value: "backend-1"}, {Name: "run", Value: "20261124T002426Z-default-r01"}, {Name: "role", Value: "backend"}}
	if got.Metrics != netip.MustParseAddrPort("0.0.0.0:9645") || !reflect.DeepEqual(got.MetricsLabels, want) {
		t.Errorf("got %v, %v", got.Metrics, got.MetricsLabels)
	}
}

func TestAnObservationServesNoMetrics(t *testing.T) {
	variables := environment()
	variables["CONNLAB_METRICS"], variables["CONNLAB_OBSERVING"] = "0.0.0.0:9645", "1"
	_, err := FromEnvironment(func(name string) string { return variables[name] })
	if err == nil || err.Error() != "CONNLAB_METRICS: an observation serves no metrics" {
		t.Errorf("got error %v", err)
	}
}

func TestLabelsOfMetricsAreChecked(t *testing.T) {
	for value, want := range map[string]string{
		"backend": "want a label such as role=backend", "role=": "want a label", "Role=x": "want a label", "a-b=x": "want a label",
		"instance=x": "is taken", "state=x": "is taken", "role=a role=b": "is taken",
	} {
		variables := environment()
		variables["CONNLAB_METRICS"], variables["CONNLAB_METRICS_LABELS"] = "0.0.0.0:9645", value
		_, err := FromEnvironment(func(name string) string { return variables[name] })
		if err == nil || !strings.HasPrefix(err.Error(), "CONNLAB_METRICS_LABELS: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", value, err, want)
		}
	}
}

func TestReadinessAndScrapesMayBeLeftOut(t *testing.T) {
	variables := environment()
	variables["CONNLAB_READY_URL"], variables["CONNLAB_SCRAPE"], variables["CONNLAB_INTERFACE"] = "", "", "net1"
	got, err := FromEnvironment(func(name string) string { return variables[name] })
	if err != nil {
		t.Fatal(err)
	}
	if got.ReadyURL != "" || got.Scrapes != nil || got.Interface != "net1" || got.Addresses != nil {
		t.Errorf("got %+v", got)
	}
}

func TestFurtherAddressesKeepTheirHostPart(t *testing.T) {
	variables := environment()
	variables["CONNLAB_ADDRESSES"] = "198.18.0.254/24 fd43::7/64"
	got, err := FromEnvironment(func(name string) string { return variables[name] })
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.Prefix{netip.MustParsePrefix("198.18.0.254/24"), netip.MustParsePrefix("fd43::7/64")}
	if !reflect.DeepEqual(got.Addresses, want) {
		t.Errorf("got %v, want %v", got.Addresses, want)
	}
}

func TestWhatIsMissingOrBadIsNamed(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"CONNLAB_ROLE", "", "want a name"},
		{"CONNLAB_ROLE", "../backend", "want a name"},
		{"CONNLAB_RATE_HZ", "", "want an integer from 1 to 100"},
		{"CONNLAB_RATE_HZ", "0", "want an integer from 1 to 100"},
		{"CONNLAB_RATE_HZ", "10.5", "want an integer from 1 to 100"},
		{"CONNLAB_DEADLINE_S", "0", "want an integer from 1 to"},
		{"CONNLAB_CAPTURE", "", "want headers, handshakes or off"},
		{"CONNLAB_CAPTURE", "all", "want headers, handshakes or off"},
		{"CONNLAB_CAPTURE_MAX_MB", "", "want an integer"},
		{"CONNLAB_CAPTURE_MAX_MB", "-1", "want an integer"},
		{"CONNLAB_READY_URL", "127.0.0.1:8081", "want an address"},
		{"CONNLAB_READY_URL", "tcp://127.0.0.1", "want an address such as tcp://127.0.0.1:8080"},
		{"CONNLAB_READY_URL", "http://127.0.0.1/health", "with its port"},
		{"CONNLAB_ADDRESSES", "198.18.0.254", "want an address with its prefix"},
		{"CONNLAB_ADDRESSES", "198.18.0.254/24 ::ffff:10.0.0.1/96", "want an address with its prefix"},
		{"CONNLAB_METRICS", "9645", "want an address and a port such as 0.0.0.0:9645"},
		{"CONNLAB_METRICS", ":9645", "want an address and a port"},
		{"CONNLAB_METRICS", "0.0.0.0:0", "want an address and a port"},
		{"CONNLAB_METRICS", "0.0.0.0:8081", "the port 8081 is a role's own"},
		{"CONNLAB_METRICS_LABELS", "role=backend", "because CONNLAB_METRICS is empty"},
		{"CONNLAB_SCRAPE", "http://127.0.0.1:8081/", "want name=address"},
		{"CONNLAB_SCRAPE", "tomcat=", "no address"},
		{"CONNLAB_SCRAPE", "../x=http://127.0.0.1:1/", "want a name such as tomcat"},
		{"CONNLAB_SCRAPE", "samples=http://127.0.0.1:1/", "is taken"},
		{"CONNLAB_SCRAPE", "a=http://127.0.0.1:1/ a=http://127.0.0.1:2/", "is taken"},
	} {
		t.Run(test.name+"="+test.value, func(t *testing.T) {
			variables := environment()
			variables[test.name] = test.value
			_, err := FromEnvironment(func(name string) string { return variables[name] })
			if err == nil || !strings.HasPrefix(err.Error(), shown(test.name)+": ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	_, err := FromEnvironment(func(string) string { return "" })
	for _, name := range []string{"CONNLAB_ROLE", "CONNLAB_RATE_HZ", "CONNLAB_CAPTURE", "CONNLAB_CAPTURE_MAX_MB"} {
		if err == nil || !strings.Contains(err.Error(), shown(name)+": ") {
			t.Errorf("%s is not named in %v", name, err)
		}
	}
}

func TestASettingOfTheStackIsNamedAsItsUserSetIt(t *testing.T) {
	variables := environment()
	variables["CONNLAB_CAPTURE"] = "everything"
	_, err := FromEnvironment(func(name string) string { return variables[name] })
	if err == nil || !strings.HasPrefix(err.Error(), "CAPTURE_MODE (in the container: CONNLAB_CAPTURE): ") {
		t.Error(err)
	}
}

func FuzzScrapes(f *testing.F) {
	f.Add("tomcat=http://127.0.0.1:8081/actuator/tomcat a=http://[::1]:1/")
	f.Fuzz(func(t *testing.T, value string) {
		list, err := scrapes(value)
		for _, s := range list {
			if err == nil && (strings.ContainsAny(s.Name, "/.") || s.Address == "") {
				t.Errorf("%q gave %+v", value, s)
			}
		}
	})
}
