// The programs of a Kubernetes control plane in one binary, built from their published modules; the first argument says
// which one runs: etcd, kube-apiserver, kube-controller-manager, kube-scheduler or kubectl.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	if len(os.Args) < 2 {
		fail("one of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl is needed as the first argument")
	}
	// Each program finds its own name and arguments where it would without this one around it.
	os.Args = os.Args[1:]
	switch os.Args[0] {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		run(controllermanager.NewControllerManagerCommand())
	case "kube-scheduler":
		run(scheduler.NewSchedulerCommand())
	case "kubectl":
		// It words its own errors.
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
	default:
		fail("no program is called " + os.Args[0])
	}
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func fail(reason string) {
	fmt.Fprintln(os.Stderr, "control_plane: "+reason)
	os.Exit(2)
}
