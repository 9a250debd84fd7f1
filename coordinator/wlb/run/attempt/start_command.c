#include "coordinator/wlb/run/attempt/start_command.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/command/launcher.h"
#include "coordinator/wlb/run/command/nanotron_config.h"
#include "coordinator/wlb/run/command/trainer.h"
#include "coordinator/wlb/run/state/print.h"

/* ---- the launcher ------------------------------------------------------------------------------------------------ */

static bool find_launcher(const struct wlb_run *run, struct wlb_launcher *launcher)
{
	return !run->job.off && !run->options.keep_command && wlb_launcher_find(run->options.command, launcher);
}

void wlb_run_launcher_tasks(struct wlb_run *run)
{
	struct wlb_launcher launcher;
	if (find_launcher(run, &launcher) && run->options.tasks_per_node == 0 &&
	    getenv("SLURM_NTASKS_PER_NODE") == NULL)
		run->options.tasks_per_node = 1;
}

static int make_command(const struct wlb_run *run, char *const *words, const struct wlb_launcher *launcher, int nodes,
                        const struct wlb_rendezvous *rendezvous, char ***made, struct wlb_error *error)
{
	const struct wlb_launcher_facts facts = {.nodes = nodes,
	                                         .first_nodes = run->job.first_node_count,
	                                         .gpus_per_node = run->job.gpus_per_node,
	                                         .id = rendezvous->id,
	                                         .address = rendezvous->address,
	                                         .port = rendezvous->port};
	return wlb_launcher_rewrite(words, launcher, &facts, made, error);
}

int wlb_run_check_launcher(const struct wlb_run *run, struct wlb_error *error)
{
	static const struct wlb_rendezvous any = {.address = "localhost", .port = 1, .id = "any"};
	struct wlb_launcher launcher;
	char **made;
	if (!find_launcher(run, &launcher))
		return 0;
	if (run->job.tasks_per_node != 1)
		return wlb_fail(error,
		                "%s: it starts the ranks of a node, and each of the %d tasks on a node would start "
		                "them; add --tasks-per-node=1 to wlb run, or --ntasks-per-node=1 to sbatch",
		                launcher.name, run->job.tasks_per_node);
	if (launcher.unknown >= 0)
		wlb_run_print("%s %.100s: an option that is not known here, so the command stays as it is, also after "
		              "the loss of a node; where it has a value, write it as OPTION=VALUE",
		              launcher.name, run->options.command[launcher.unknown]);
	if (make_command(run, run->options.command, &launcher, run->job.first_node_count, &any, &made, error) != 0)
		return -1;
	wlb_launcher_free(made);
	return 0;
}

/* ---- where the ranks meet ---------------------------------------------------------------------------------------- */

/* Returns the first port that the kernel gives to connections; 0: not known. */
static int first_ephemeral(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	int first = 0;
	if (file != NULL && fscanf(file, "%6d", &first) != 1)
		first = 0;
	if (file != NULL)
		fclose(file);
	return first;
}

static bool is_address(const struct sockaddr *socket, const char *text)
{
	char numbers[INET6_ADDRSTRLEN] = "";
	if (socket->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)socket)->sin_addr, numbers,
		          sizeof(numbers));
	else if (socket->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)socket)->sin6_addr, numbers,
		          sizeof(numbers));
	return strcmp(numbers, text) == 0;
}

/* Whether the text is an address of this host on a network: scripts set MASTER_ADDR from `hostname -I`. */
static bool is_own_address(const char *text)
{
	struct ifaddrs *all;
	bool is_found = false;
	if (getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *one = all; one != NULL && !is_found; one = one->ifa_next)
		is_found = one->ifa_addr != NULL && (one->ifa_flags & IFF_LOOPBACK) == 0 &&
		           is_address(one->ifa_addr, text);
	freeifaddrs(all);
	return is_found;
}

static const char *address_of(const char *name, const struct wlb_slurm_node *nodes, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(nodes[i].name, name) == 0 && nodes[i].address[0] != '\0')
			return nodes[i].address;
	return NULL;
}

/* Whether the script's MASTER_ADDR is another node's than that of rank 0. */
static bool is_elsewhere(const struct wlb_run_job *job, const char *given, const struct wlb_rendezvous_node *first,
                         const struct wlb_slurm_node *known, int known_count)
{
	struct wlb_rendezvous_node *nodes = NULL;
	char **names = NULL;
	int count = 0;
	const char *list = getenv("SLURM_JOB_NODELIST");
	/* With the nodes that the job has lost. */
	if (list != NULL && wlb_hostlist_expand(list, &names, &count, NULL) == 0)
		nodes = calloc((size_t)count + 1, sizeof(*nodes));
	for (int i = 0; nodes != NULL && i < count; i++)
		nodes[i] = (struct wlb_rendezvous_node){names[i], address_of(names[i], known, known_count)};
	const char *meant = is_own_address(given) ? job->this_node : given;
	bool is = nodes != NULL && wlb_rendezvous_is_elsewhere(meant, nodes, count, first);
	free(nodes);
	wlb_strings_free(names, count);
	return is;
}

/* Slurm's address of a node is one that other nodes reach it by; its name need not be known to them. */
static void find_rendezvous(const struct wlb_run *run, struct wlb_attempt *attempt)
{
	struct wlb_rendezvous *found = &attempt->rendezvous;
	struct wlb_slurm_node *known = NULL;
	int known_count = 0;
	const char *given = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
	if (wlb_slurm_nodes(&known, &known_count, NULL) != 0)
		known_count = 0;
	const struct wlb_rendezvous_node first = {attempt->nodes[0], address_of(attempt->nodes[0], known, known_count)};
	const char *address = first.address != NULL ? first.address : first.name;
	if (given != NULL && *given != '\0' && !is_elsewhere(&run->job, given, &first, known, known_count))
		address = given;
	else if (given != NULL && *given != '\0')
		wlb_run_print(
			"attempt %d: MASTER_ADDR is %s, since %.200s, which the script has set, is not the node of "
			"rank 0",
			attempt->number, address, given);
	snprintf(found->address, sizeof(found->address), "%s", address);
	found->port = port != NULL ? atoi(port) : 0;
	if (found->port < 1 || found->port > 65535)
		found->port = wlb_rendezvous_port(run->job.job_id, run->launch, attempt->number, first_ephemeral());
	snprintf(found->id, sizeof(found->id), "%s.%d", run->id, attempt->number);
	free(known);
}

/* ---- the layout -------------------------------------------------------------------------------------------------- */

static void print_once(const struct wlb_run *run, const struct wlb_trainer *trainer, const char *kept)
{
	if (trainer->other_dp != NULL && wlb_trainer_value(run->options.command, trainer->other_dp) == NULL)
		wlb_run_print("--for=%s: %s", trainer->name, trainer->other_dp_why);
	if (kept[0] != '\0')
		wlb_run_print("--for=%s: these options of the command stay as they are: %s", trainer->name, kept);
}

/* Adds the layout to the user's words where --for names the trainer; behind the script, as a launcher has it. */
static int tell_layout(const struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error)
{
	const struct wlb_run_settings *settings = &attempt->settings;
	const struct wlb_trainer *trainer = wlb_trainer_find(run->options.trainer);
	bool recomputes = settings->recompute != NULL && strcmp(settings->recompute, "full") == 0;
	struct wlb_trainer_layout layout = {.layout = attempt->layout,
	                                    .micro_batch_size = settings->micro_batch_size,
	                                    .micro_batches = settings->micro_batches,
	                                    .interleave = settings->interleave,
	                                    .recomputes_layers = recomputes,
	                                    .recompute_layers = settings->recompute_layers};
	char kept[512], config[PATH_MAX];
	bool tells_recompute = wlb_trainer_tells_recompute(trainer);
	if (trainer->config_option != NULL) {
		snprintf(config, sizeof(config), "%.3800s/trainer-%s.yaml", run->job.spool_dir, run->id);
		layout.config = config;
		if (wlb_nanotron_config_write(run->options.command, &layout, config, &tells_recompute, error) < 0)
			return -1;
	}
	if (wlb_trainer_tell(trainer, &layout, run->options.command, &attempt->command, kept, sizeof(kept), error) < 0)
		return -1;
	if (attempt->number == 1)
		print_once(run, trainer, kept);
	if (recomputes && !tells_recompute)
		wlb_run_print("--for=%s: the plan recomputes whole layers in the backward pass, which the trainer is "
		              "not told: set it in its configuration, or it may run out of memory",
		              trainer->name);
	return 0;
}

/* Replaces the options of the launcher. */
static int tell_nodes(const struct wlb_run *run, const struct wlb_launcher *launcher, struct wlb_attempt *attempt,
                      struct wlb_error *error)
{
	char **told = attempt->command;
	int rc = make_command(run, told != NULL ? told : run->options.command, launcher, attempt->node_count,
	                      &attempt->rendezvous, &attempt->command, error);
	if (rc == 0)
		wlb_launcher_free(told);
	return rc;
}

int wlb_run_start_command(const struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error)
{
	struct wlb_launcher launcher;
	char line[1024];
	find_rendezvous(run, attempt);
	if (run->options.trainer != NULL && tell_layout(run, attempt, error) != 0)
		return -1;
	if (find_launcher(run, &launcher) && launcher.unknown < 0 && tell_nodes(run, &launcher, attempt, error) != 0)
		return -1;
	if (attempt->command == NULL)
		return 0;
	wlb_launcher_line(attempt->command, line, sizeof(line));
	wlb_run_print("attempt %d runs: %s", attempt->number, line);
	return 0;
}
