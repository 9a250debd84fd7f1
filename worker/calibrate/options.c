#include "worker/calibrate/options.h"

#define FIELD(name) offsetof(struct wlb_calibrate_options, name)

static const struct wlb_option rows[] = {
	{WLB_OPTION(TEXT, "output", FIELD(output), "FILE",
                    "where the machine file goes; an old one is replaced; 'wlb plan --machine FILE' reads it"),
         .initial = "machine.json"},
	{WLB_OPTION(TEXT, "name", FIELD(name), "TEXT",
                    "name of the machine in the file (default: the processor and its number of cores)")},
	{WLB_OPTION(TEXT, "machine", FIELD(base), "NAME|FILE",
                    "machine whose values are taken where this job can measure none, such as the network in a job of "
                    "one node (default: CPU, with --device cuda H100)"),
         .choices = "A100|B200|B300|CPU|GB200|GB300|H100|H200|MI300X", .open = true},
	{WLB_OPTION(CHOICE, "device", FIELD(device), NULL, "what is measured"), .choices = "cpu|cuda",
         .initial = "cpu"},
	{WLB_OPTION(
		 CHOICE, "dtype", FIELD(dtype), NULL,
		 "element type of weights and activations, as in training; auto: bfloat16 on a GPU, float32 on a CPU"),
         .choices = "float32|float64|bfloat16|auto", .initial = "auto"},
	{WLB_OPTION(
		 CHOICE, "transport", FIELD(transport), NULL,
		 "what carries the messages of GPUs, as in training; auto: nccl where every rank can use it, else mpi, "
		 "with a line that says why"),
         .choices = "auto|nccl|mpi", .initial = "auto"},
	{WLB_OPTION(INT, "threads", FIELD(threads), "N",
                    "threads of a rank, as in training; 0: the CPUs that it may use, divided by the ranks of its node"),
         .max = 1024, .initial = "0"},
	{WLB_OPTION(INT, "head-dim", FIELD(head_dim), "N", "width of an attention head"), .min = 8, .max = 1024,
         .initial = "128"},
	{WLB_OPTION(REAL, "seconds", FIELD(seconds), "X",
                    "about how long all measurements may take; with less, shorter sequences and smaller matrices are "
                    "measured"),
         .min = 1, .max = 3600, .initial = "60"},
	{WLB_OPTION(
		 REAL, "deviation", FIELD(deviation), "X",
		 "a measurement of a rank that is more than this factor above or below the median of all ranks is an "
		 "outlier: the rank is named, and that measurement of it is not used; nothing is written where half "
		 "of the ranks or more are outliers in products, attention, memory or a link"),
         .min = 1.01, .max = 1000, .initial = "1.5"},
	{WLB_OPTION(FLAG, "local", FIELD(local), NULL,
                    "only write the file; without this, and with a coordinator configured, it is stored there for "
                    "later runs "
                    "on such nodes")},
	{WLB_OPTION(FLAG, "quick", FIELD(quick), NULL, "a tenth of the time, with fewer points")},
	{WLB_OPTION(VERSION, "version", 0, NULL, "print the version and exit")},
};

const struct wlb_option_table wlb_calibrate_option_table = {
	.command = "wlb calibrate",
	.about = "Measures the speed of the nodes of a job as training uses them, and writes a machine file. Start it "
		 "in the job with as many ranks on a node as training has there, one for each GPU or core: "
		 "srun --mpi=pmix --ntasks-per-node=N wlb calibrate.",
	.options = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
};
