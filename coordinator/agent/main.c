/*
 * wlb-agent: one process of a node for each step of a run, started by spank_wlb.so in slurmstepd.
 *
 * It prints the path of its node page, or why there is none, on its standard output, and goes on in a detached
 * child: slurmstepd must find no children but its tasks.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#include "common/number.h"
#include "coordinator/agent/agent.h"
#include "coordinator/agent/message.h"
#include "coordinator/client/spool.h"

enum { NODES_MOST = 65533, NAME_MOST = 255, EXIT_USAGE = 2 };

static const char help[] =
	"Usage: wlb-agent --run ID --attempt UUID --node NAME --nodes N --tasks N\n\n"
	"Reports for one node of a step of a run. Started by spank_wlb.so, with a socket to it as standard input; see\n"
	"wlb-agent(8).\n";

static int parse_count(const char *option, const char *value, int most, int *count, struct wlb_error *error)
{
	int64_t number;
	if (wlb_number_parse(option, value, 1, most, &number, error) != 0)
		return -1;
	*count = (int)number;
	return 0;
}

static int apply(struct wlb_agent_options *o, int option, const char *value, struct wlb_error *error)
{
	switch (option) {
	case 'r':
		o->run_id = value;
		return 0;
	case 'a':
		o->attempt_id = value;
		return 0;
	case 'n':
		o->node = value;
		return 0;
	case 'N':
		return parse_count("--nodes", value, NODES_MOST, &o->nodes, error);
	case 't':
		return parse_count("--tasks", value, WLB_AGENT_TASKS_MOST, &o->tasks, error);
	default:
		return wlb_fail(error, "this usage is unknown; see wlb-agent --help");
	}
}

static int check(const struct wlb_agent_options *o, struct wlb_error *error)
{
	struct wlb_spool_identity identity;
	if (o->run_id == NULL || o->attempt_id == NULL || o->node == NULL || o->nodes == 0 || o->tasks == 0)
		return wlb_fail(error,
		                "--run, --attempt, --node, --nodes and --tasks are needed; see wlb-agent --help");
	if (o->node[0] == '\0' || strlen(o->node) > NAME_MOST)
		return wlb_fail(error, "--node %.40s: must be a name of 1 to %d characters", o->node, NAME_MOST);
	return wlb_spool_identify(&identity, o->run_id, o->attempt_id, "node", error);
}

static int parse_options(int argc, char **argv, struct wlb_agent_options *o, struct wlb_error *error)
{
	static const struct option options[] = {
		{"run", required_argument, NULL, 'r'},   {"attempt", required_argument, NULL, 'a'},
		{"node", required_argument, NULL, 'n'},  {"nodes", required_argument, NULL, 'N'},
		{"tasks", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},     {0}};
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h' || option == 'v') {
			fputs(option == 'h' ? help : "wlb-agent " WLB_VERSION "\n", stdout);
			exit(0);
		}
		if (apply(o, option, optarg, error) != 0)
			return -1;
	}
	if (optind < argc)
		return wlb_fail(error, "'%.40s' is one word too many; see wlb-agent --help", argv[optind]);
	return check(o, error);
}

/* Only the end of the step ends the agent: signals to the step are for its ranks. */
static void ignore_signals(void)
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGTSTP};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		signal(numbers[i], SIG_IGN);
}

/* Runs in the child: of slurmstepd's descriptors it keeps only the socket. */
static int live(const struct wlb_agent_options *options, const struct wlb_client_config *config)
{
	struct wlb_error error;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	setsid();
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	openlog("wlb-agent", LOG_PID, LOG_DAEMON);
	if (wlb_agent_run(options, config, &error) == 0)
		return 0;
	syslog(LOG_ERR, "run %s on %s: %s", options->run_id, options->node, error.message);
	return 1;
}

static int find_stepd(struct wlb_agent_options *options, struct wlb_error *error)
{
	struct ucred plugin;
	socklen_t size = sizeof(plugin);
	if (getsockopt(options->control_fd, SOL_SOCKET, SO_PEERCRED, &plugin, &size) != 0)
		return wlb_fail(error, "the standard input is no socket of spank_wlb.so, which starts this program: %s",
		                strerror(errno));
	options->stepd = plugin.pid;
	return 0;
}

static int begin(struct wlb_agent_options *options, struct wlb_error *error)
{
	int page_fd;
	struct wlb_client_config config;
	if (find_stepd(options, error) != 0 || wlb_client_config_load(&config, error) != 0)
		return -1;
	options->page = wlb_node_page_create(options->attempt_id, &page_fd, error);
	if (options->page == NULL)
		return -1;
	ignore_signals();
	pid_t child = fork();
	if (child == 0)
		exit(live(options, &config));
	if (child < 0)
		return wlb_fail(error, "fork: %s", strerror(errno));
	printf("/proc/%d/fd/%d\n", (int)child, page_fd);
	return 0;
}

int main(int argc, char **argv)
{
	struct wlb_error error;
	struct wlb_agent_options options = {.control_fd = STDIN_FILENO};
	int code = EXIT_USAGE;
	if (parse_options(argc, argv, &options, &error) == 0) {
		if (begin(&options, &error) == 0)
			return 0;
		code = 1;
	}
	fprintf(stderr, "wlb-agent: %s\n", error.message);
	return code;
}
