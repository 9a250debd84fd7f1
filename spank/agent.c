#include "spank/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/agent/message.h"
#include "spank/child.h"
#include "spank/environment.h"

enum {
	VARIABLES_MOST = 16,
	MESSAGES_BUFFER_BYTES = 4 * 1024 * 1024, /* the kernel reduces it to its own limit */
	END_MOST_MS = 3800, /* the agent needs 600 ms for its last report where wlbd does not answer, 2.8 s for
	                       processes that ranks have left */
};

/* ---- starting it ------------------------------------------------------------------------------------------------ */

/* Makes the agent's environment; `variables` has space for VARIABLES_MOST and a NULL. */
static int make_environment(spank_t sp, const struct wlb_spank_step *step, char **variables)
{
	char value[4096];
	int count = 0;
	if (asprintf(&variables[count++], "SLURMD_NODENAME=%s", step->node) < 0)
		return -1;
	for (int i = 0; step->names[i] != NULL && count < VARIABLES_MOST; i++) {
		wlb_environment_get(sp, step->names[i], value, sizeof(value));
		if (value[0] != '\0' && asprintf(&variables[count++], "%s=%s", step->names[i], value) < 0)
			return -1;
	}
	variables[count] = NULL;
	return 0;
}

/* The socket becomes its standard input, the report its output; slurmstepd's own descriptors are closed. */
static _Noreturn void become_agent(const char *path, char *const *argv, char *const *variables, int socket, int report)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(socket, STDIN_FILENO) >= 0 && dup2(report, STDOUT_FILENO) >= 0 && dup2(report, STDERR_FILENO) >= 0 &&
	    chdir("/") == 0) {
		closefrom(STDERR_FILENO + 1);
		execve(path, argv, variables);
	}
	dprintf(STDERR_FILENO, "%s: cannot be started: %s", path, strerror(errno));
	_exit(1);
}

static int start(const char *path, char *const *argv, char *const *variables, int socket, int timeout_ms, char *page,
                 size_t size, struct wlb_error *error)
{
	struct wlb_child child;
	int report, status;
	if (wlb_child_start(&child, &report, error) != 0)
		return -1;
	if (child.pid == 0)
		become_agent(path, argv, variables, socket, report);
	if (wlb_child_finish(&child, timeout_ms, path, page, size, &status, error) != 0)
		return -1;
	page[strcspn(page, "\n")] = '\0';
	if (page[0] == '\0')
		return wlb_fail(error, "%s: ended with wait status 0x%x", path, (unsigned)status);
	return strncmp(page, "/proc/", strlen("/proc/")) == 0 ? 0 : wlb_fail(error, "%s", page);
}

/* Opens the process of the agent, whose number is in the path of its page; -1 before Linux 5.3. */
static int open_process(const char *page)
{
	int pid;
	return sscanf(page, "/proc/%d/", &pid) == 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

int wlb_spank_agent_start(struct wlb_spank_agent *agent, spank_t sp, const struct wlb_spank_args *args,
                          const struct wlb_spank_step *step, char *page, size_t size, struct wlb_error *error)
{
	char nodes[16], tasks[16], *variables[VARIABLES_MOST + 1] = {NULL};
	char *argv[] = {"wlb-agent",
	                "--run",
	                (char *)step->run_id,
	                "--attempt",
	                (char *)step->attempt_id,
	                "--node",
	                (char *)step->node,
	                "--nodes",
	                nodes,
	                "--tasks",
	                tasks,
	                step->is_own ? "--only-record" : NULL,
	                NULL};
	int ends[2];
	snprintf(nodes, sizeof(nodes), "%d", step->nodes);
	snprintf(tasks, sizeof(tasks), "%d", step->tasks);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return wlb_fail(error, "socketpair: %s", strerror(errno));
	int buffer_bytes = MESSAGES_BUFFER_BYTES;
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
	int rc = make_environment(sp, step, variables) == 0
	                 ? start(args->agent, argv, variables, ends[1], args->agent_timeout_ms, page, size, error)
	                 : wlb_fail(error, "no memory");
	for (int i = 0; i < VARIABLES_MOST && variables[i] != NULL; i++)
		free(variables[i]);
	close(ends[1]);
	if (rc == 0) {
		*agent = (struct wlb_spank_agent){
			.fd = ends[0], .process_fd = open_process(page), .tasks_left = step->tasks};
		snprintf(agent->node, sizeof(agent->node), "%s", step->node);
	} else {
		close(ends[0]);
	}
	return rc;
}

/* ---- messages to it
 * ----------------------------------------------------------------------------------------------- */

/* A message that does not fit into the socket's buffer is lost: the agent detects by itself that a process is gone. */
static void send_message(const struct wlb_spank_agent *agent, const char *message)
{
	if (agent->fd >= 0)
		(void)!send(agent->fd, message, strlen(message), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void wlb_spank_agent_task(const struct wlb_spank_agent *agent, int rank, pid_t pid)
{
	char message[WLB_AGENT_MESSAGE_SIZE];
	snprintf(message, sizeof(message), "task %d %d", rank, (int)pid);
	send_message(agent, message);
}

/* Its process descriptor also tells that the kernel lists it in no cgroup any more. The socket closes a moment
 * before. */
static void wait_for_end(const struct wlb_spank_agent *agent)
{
	int64_t deadline_ms = wlb_clock_ms() + END_MOST_MS;
	struct pollfd ended = {.fd = agent->process_fd >= 0 ? agent->process_fd : agent->fd,
	                       .events = agent->process_fd >= 0 ? POLLIN : 0}; /* that a socket closes is always told */
	while (poll(&ended, 1, wlb_clock_left_ms(deadline_ms)) < 0 && errno == EINTR)
		;
}

/* `wlb run` reads this line in srun's stderr. */
static void tell_ended_processes(const struct wlb_spank_agent *agent)
{
	char text[WLB_AGENT_MESSAGE_SIZE];
	int count;
	ssize_t length = recv(agent->fd, text, sizeof(text) - 1, MSG_DONTWAIT);
	text[length > 0 ? length : 0] = '\0';
	if (sscanf(text, "ended %6d", &count) == 1 && count > 0)
		slurm_error("wlb: ended %d process%s that ranks had left on %s", count, count == 1 ? "" : "es",
		            agent->node);
}

void wlb_spank_agent_exit(struct wlb_spank_agent *agent, int rank, int status)
{
	char message[WLB_AGENT_MESSAGE_SIZE];
	snprintf(message, sizeof(message), "exit %d %d", rank,
	         WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	send_message(agent, message);
	if (--agent->tasks_left == 0)
		wlb_spank_agent_end(agent);
}

/* The shutdown ends a report of the agent that wlbd has not answered yet. */
void wlb_spank_agent_end(struct wlb_spank_agent *agent)
{
	if (agent->fd < 0)
		return;
	send_message(agent, "end");
	shutdown(agent->fd, SHUT_WR);
	wait_for_end(agent);
	tell_ended_processes(agent);
	if (agent->process_fd >= 0)
		close(agent->process_fd);
	close(agent->fd);
	agent->fd = -1;
}
