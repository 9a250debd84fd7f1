/*
 * wlb-agent: one process of a node for each step of a run, started by spank_wlb.so in slurmstepd.
 *
 * It prints the path of its node page on its standard output, or the reason why there is none on stderr, and continues
 * in a detached child, since slurmstepd must find no children but its tasks.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#include "common/command.h"
#include "coordinator/agent/agent.h"
#include "coordinator/agent/options.h"
#include "coordinator/client/spool.h"

enum { NODE_NAME_MAX = 255 };

static int check(const struct wlb_agent_options *o, struct wlb_error *error)
{
	struct wlb_spool_identity identity;
	if (strlen(o->node) > NODE_NAME_MAX)
		return wlb_fail(error, "--node '%.40s': must be a name of 1 to %d characters", o->node, NODE_NAME_MAX);
	return wlb_spool_identify(&identity, o->run_id, o->attempt_id, "node", error);
}

/* Only the end of the step ends the agent: signals to the step are for its ranks. */
static void ignore_signals(void)
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGTSTP};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		signal(numbers[i], SIG_IGN);
}

/* Runs in the child: of slurmstepd's descriptors it keeps only the socket. */
static int run_detached(const struct wlb_agent_options *options, const struct wlb_client_config *config)
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

/* wlb-stacks is in the folder of this program. Where it cannot be found out, no stacks are gathered. */
static void find_stacks_program(struct wlb_agent_options *options, char *path, size_t size)
{
	static const char name[] = "wlb-stacks";
	ssize_t length = readlink("/proc/self/exe", path, size - sizeof(name));
	char *slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
	if (slash == NULL)
		return;
	memcpy(slash + 1, name, sizeof(name));
	options->stacks_program = path;
}

static int begin(struct wlb_agent_options *options, struct wlb_error *error)
{
	int page_fd;
	char stacks_program[PATH_MAX];
	struct wlb_client_config config;
	if (find_stepd(options, error) != 0 || wlb_client_config_load(&config, error) != 0)
		return -1;
	options->page = wlb_node_page_create(options->attempt_id, options->tasks, &page_fd, error);
	if (options->page == NULL)
		return -1;
	find_stacks_program(options, stacks_program, sizeof(stacks_program));
	ignore_signals();
	pid_t child = fork();
	if (child == 0)
		exit(run_detached(options, &config));
	if (child < 0)
		return wlb_fail(error, "fork: %s", strerror(errno));
	printf("/proc/%d/fd/%d\n", (int)child, page_fd);
	return 0;
}

static int run(void *values, struct wlb_error *error)
{
	struct wlb_agent_options *options = values;
	options->control_fd = STDIN_FILENO;
	if (check(options, error) != 0)
		return WLB_EXIT_USAGE;
	return begin(options, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

static const struct wlb_command command = {
	.options = &wlb_agent_option_table,
	.values_bytes = sizeof(struct wlb_agent_options),
	.run = run,
};

int main(int argc, char **argv)
{
	return wlb_command_main(&command, argc, argv);
}
