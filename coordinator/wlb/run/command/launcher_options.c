#include "coordinator/wlb/run/command/launcher_options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define TORCHRUN_VALUED                                                                                                \
	"nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts monitor-interval "            \
	"start-method event-log-handler role log-dir redirects tee local-ranks-filter node-rank "                      \
	"master-addr master-port local-addr logs-specs numa-binding signals-to-handle shutdown-timeout "               \
	"duplicate-stdout-filters duplicate-stderr-filters log-line-prefix-template print-completion"
#define TORCHRUN_FLAGS "standalone module no-python run-path use-env virtual-local-rank help"
#define TORCHRUN_LETTERS "m=module r=redirects t=tee h=help"

const struct wlb_launcher_syntax wlb_launcher_torchrun = {
	.valued = TORCHRUN_VALUED " logdir",
	.flags = TORCHRUN_FLAGS,
	.letters = TORCHRUN_LETTERS,
	.abbreviates = true,
};

const struct wlb_launcher_syntax wlb_launcher_ft = {
	.valued = TORCHRUN_VALUED
	" local-rank term-timeout workers-stop-timeout fault-tol-cfg-path restart-policy ft-cfg-path "
	"ft-workload-check-interval ft-initial-rank-heartbeat-timeout ft-rank-heartbeat-timeout "
	"ft-node-health-check-interval ft-node-health-check-endpoint ft-safety-factor ft-rank-termination-signal "
	"ft-log-level ft-rank-out-of-section-timeout ft-rank-section-timeouts ft-restart-check-interval "
	"ft-restart-policy ft-enable-nic-monitor ft-enable-nic-healthcheck ft-pci-topo-file "
	"ft-link-down-path-template ft-link-state-path-template ft-enable-dist-storage-healthcheck "
	"ft-storage-health-check-path ft-segment ft-segment-health-check-dir ft-skip-section-response ft-rdzv-impl "
	"ft-numa-bind-strict ft-gpu-memory-reclaim-timeout ft-gpu-memory-tolerance-mb ft-gpu-memory-poll-interval "
	"ft-check-remaining-processes ft-install-exception-hook ft-max-no-progress-cycles "
	"ft-min-progress-iterations ft-checkpoint-iteration-file ft-no-restart-exit-code ft-attribution-endpoint "
	"ft-attribution-startup-timeout ft-attribution-llm-api-key-file ft-attribution-llm-base-url "
	"ft-attribution-llm-model ft-attribution-analysis-backend ft-attribution-stop-action "
	"ft-attribution-log-level ft-attribution-export-url ft-cycle-info-dir ft-cycle-info-job-id "
	"ft-per-cycle-applog-prefix ft-nvrx-logfile ft-enable-log-server ft-log-aggregator-count "
	"ft-log-leaf-max-queue-chunks ft-log-server-graceful-shutdown-timeout ft-log-server-log-prefix "
	"ft-log-server-port ft-param-workload-check-interval ft-param-initial-rank-heartbeat-timeout "
	"ft-param-rank-heartbeat-timeout ft-param-node-health-check-interval ft-param-safety-factor "
	"ft-param-rank-termination-signal ft-param-log-level ft-param-rank-out-of-section-timeout "
	"ft-param-rank-section-timeouts ft-param-restart-check-interval ft-param-enable-nic-monitor "
	"ft-param-pci-topo-file ft-param-link-down-path-template",
	.flags = TORCHRUN_FLAGS " ignore-missing-fault-tol-cfg ft-ignore-missing-cfg",
	.letters = TORCHRUN_LETTERS,
	.abbreviates = true,
};

const struct wlb_launcher_syntax wlb_launcher_accelerate = {
	.valued = "config-file mixed-precision num-processes num-machines num-cpu-threads-per-process "
		  "dynamo-backend dynamo-mode gpu-ids machine-rank main-process-ip main-process-port tee log-dir "
		  "role rdzv-backend rdzv-conf max-restarts monitor-interval vm env main-training-function "
		  "deepspeed-config-file zero-stage offload-optimizer-device offload-param-device "
		  "offload-optimizer-nvme-path offload-param-nvme-path gradient-accumulation-steps "
		  "gradient-clipping zero3-init-flag zero3-save-16bit-model deepspeed-hostfile "
		  "deepspeed-exclusion-filter deepspeed-inclusion-filter deepspeed-multinode-launcher "
		  "deepspeed-moe-layer-cls-names fsdp-version fsdp-offload-params fsdp-min-num-params "
		  "fsdp-sharding-strategy fsdp-reshard-after-forward fsdp-auto-wrap-policy "
		  "fsdp-transformer-layer-cls-to-wrap fsdp-backward-prefetch-policy fsdp-backward-prefetch "
		  "fsdp-state-dict-type fsdp-forward-prefetch fsdp-use-orig-params fsdp-cpu-ram-efficient-loading "
		  "fsdp-sync-module-states fsdp-activation-checkpointing megatron-lm-tp-degree "
		  "megatron-lm-pp-degree megatron-lm-num-micro-batches megatron-lm-sequence-parallelism "
		  "megatron-lm-recompute-activations megatron-lm-use-distributed-optimizer "
		  "megatron-lm-gradient-clipping fp8-backend fp8-margin fp8-interval fp8-format "
		  "fp8-amax-history-len fp8-amax-compute-algo fp8-override-linear-precision fp8-opt-level "
		  "aws-access-key-id aws-secret-access-key mpirun-hostfile mpirun-ccl "
		  "parallelism-config-dp-replicate-size parallelism-config-dp-shard-size "
		  "parallelism-config-tp-size parallelism-config-cp-size parallelism-config-cp-backend "
		  "parallelism-config-cp-comm-strategy parallelism-config-sp-size parallelism-config-sp-backend "
		  "parallelism-config-sp-seq-length parallelism-config-sp-seq-length-is-variable "
		  "parallelism-config-sp-attn-implementation fp8-enable-fsdp-float8-all-gather fp8-pad-inner-dim "
		  "fsdp-activation-checkpointing-offload megatron-lm-attention-backend "
		  "megatron-lm-attention-dropout megatron-lm-attention-softmax-in-fp32 "
		  "megatron-lm-calculate-per-token-loss megatron-lm-context-parallel-size "
		  "megatron-lm-decoder-last-pipeline-num-layers megatron-lm-eod-mask-loss "
		  "megatron-lm-expert-model-parallel-size megatron-lm-expert-tensor-parallel-size "
		  "megatron-lm-hidden-dropout megatron-lm-no-load-optim megatron-lm-no-save-optim "
		  "megatron-lm-optimizer-cpu-offload megatron-lm-overlap-cpu-optimizer-d2h-h2d "
		  "megatron-lm-recompute-granularity megatron-lm-recompute-method "
		  "megatron-lm-recompute-num-layers megatron-lm-use-custom-fsdp "
		  "megatron-lm-use-precision-aware-optimizer megatron-lm-use-rotary-position-embeddings",
	.flags = "help quiet cpu multi-gpu tpu ipex enable-cpu-affinity dynamo-use-fullgraph dynamo-use-dynamic "
		 "dynamo-use-regional-compilation use-deepspeed use-fsdp use-megatron-lm use-xpu same-network module "
		 "no-python tpu-cluster no-tpu-cluster tpu-use-sudo downcast-bf16 fp8-use-autocast-during-eval debug "
		 "use-parallelism-config",
	.letters = "h=help q=quiet t=tee m=module",
};

const struct wlb_launcher_syntax wlb_launcher_deepspeed = {
	.valued = "hostfile include exclude num-nodes min-elastic-nodes max-elastic-nodes num-gpus num-accelerators "
		  "master-port master-addr node-rank launcher launcher-args enable-each-rank-log autotuning comment "
		  "account bind-core-list ssh-port venv-script",
	.flags = "help module no-python no-local-rank no-ssh no-ssh-check force-multi save-pid elastic-training "
		 "bind-cores-to-rank",
	.letters = "h=help H=hostfile i=include e=exclude",
	.abbreviates = true,
};

/* Counts the names of a list that begin so; *whole receives the last of them, or the name that is equal, which counts
 * alone. */
static int count_names(const char *list, const char *begin, size_t length, const char **whole, size_t *whole_length)
{
	int count = 0;
	for (const char *at = list; *at != '\0'; at += strspn(at, " ")) {
		size_t name = strcspn(at, " ");
		if (name >= length && strncmp(at, begin, length) == 0) {
			*whole = at;
			*whole_length = name;
			if (name == length)
				return 1;
			count++;
		}
		at += name;
	}
	return count;
}

/* Finds the whole name of a written one. Returns 1 where it has a value, 0 where it has none, -1 where there is no such
 * name, or several. */
static int find_name(const struct wlb_launcher_syntax *syntax, const char *written, size_t length, char *name,
                     size_t size)
{
	const char *valued = NULL, *flag = NULL;
	size_t valued_length = 0, flag_length = 0;
	int valued_count = count_names(syntax->valued, written, length, &valued, &valued_length);
	int flag_count = count_names(syntax->flags, written, length, &flag, &flag_length);
	bool is_valued = valued_count == 1 && valued_length == length;
	bool is_flag = flag_count == 1 && flag_length == length;
	if (!is_valued && !is_flag && syntax->abbreviates && valued_count + flag_count == 1) {
		is_valued = valued_count == 1;
		is_flag = flag_count == 1;
	}
	if (!is_valued && !is_flag)
		return -1;
	snprintf(name, size, "%.*s", (int)(is_valued ? valued_length : flag_length), is_valued ? valued : flag);
	return is_valued;
}

/* Writes the name of "--NAME=VALUE" with hyphens; returns its length, 0 where it has no room. */
static size_t take_name(const char *word, char *name, size_t size)
{
	size_t length = strcspn(word, "=");
	if (length >= size)
		return 0;
	for (size_t i = 0; i < length; i++)
		name[i] = word[i] == '_' ? '-' : word[i];
	name[length] = '\0';
	return length;
}

/* Whether argparse takes the word for the value of the option before it. */
static bool is_value(const char *word)
{
	return word != NULL && (word[0] != '-' || word[1] == '\0' || (word[1] >= '0' && word[1] <= '9'));
}

static enum wlb_launcher_word read_long(const struct wlb_launcher_syntax *syntax, char *const *words,
                                        struct wlb_launcher_option *option)
{
	char written[sizeof(option->name)];
	const char *text = words[0] + strlen("--"), *equals = strchr(text, '=');
	size_t length = take_name(text, written, sizeof(written));
	int has_value = length > 0 ? find_name(syntax, written, length, option->name, sizeof(option->name)) : -1;
	if (has_value < 0) {
		if (equals == NULL && is_value(words[1]))
			return WLB_LAUNCHER_UNKNOWN;
		snprintf(option->name, sizeof(option->name), "%s", length > 0 ? written : "?");
		has_value = equals != NULL;
	}
	bool is_next = has_value == 1 && equals == NULL;
	if (is_next && !is_value(words[1]))
		return WLB_LAUNCHER_UNKNOWN;
	option->value = equals != NULL ? equals + 1 : is_next ? words[1] : NULL;
	option->words = is_next ? 2 : 1;
	return WLB_LAUNCHER_OPTION;
}

/* "-m", "-r 3", "-r3". */
static enum wlb_launcher_word read_short(const struct wlb_launcher_syntax *syntax, char *const *words,
                                         struct wlb_launcher_option *option)
{
	const char *text = words[0] + 1;
	for (const char *at = syntax->letters; *at != '\0'; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		if (at[0] == text[0]) {
			int has_value = find_name(syntax, at + 2, length - 2, option->name, sizeof(option->name));
			bool is_next = has_value == 1 && text[1] == '\0';
			if ((has_value == 0 && text[1] != '\0') || (is_next && !is_value(words[1])))
				return WLB_LAUNCHER_UNKNOWN;
			option->value = is_next ? words[1] : has_value == 1 ? text + 1 : NULL;
			option->words = is_next ? 2 : 1;
			return WLB_LAUNCHER_OPTION;
		}
		at += length;
	}
	return WLB_LAUNCHER_UNKNOWN;
}

enum wlb_launcher_word wlb_launcher_option_read(const struct wlb_launcher_syntax *syntax, char *const *words,
                                                struct wlb_launcher_option *option)
{
	const char *word = words[0];
	*option = (struct wlb_launcher_option){0};
	if (word == NULL || word[0] != '-' || word[1] == '\0' || strcmp(word, "--") == 0)
		return WLB_LAUNCHER_SCRIPT;
	return word[1] == '-' ? read_long(syntax, words, option) : read_short(syntax, words, option);
}
