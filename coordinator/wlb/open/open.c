/*
 * wlb-open, which `wlb open` runs: serves the page of runs to the user's own browser, and ends with the user's session.
 * It asks the coordinator as the user, so the page has what the user may read.
 */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/command.h"
#include "common/show.h"
#include "coordinator/wlb/open/page_server.h"
#include "coordinator/wlb/report/data.h"
#include "coordinator/wlb/run_name.h"

enum { STEPS_MOST = 2000 }; /* read whole; of more, as many points */

struct request {
	struct wlb_option_list runs;
	int port;
};

struct runs {
	char names[WLB_REPORT_RUNS_MAX][WLB_RUN_NAME_BYTES];
	const char *texts[WLB_REPORT_RUNS_MAX];
	int count;
};

/* A wlb_page_data. */
static json_t *ask(void *context, struct wlb_error *error)
{
	const struct runs *runs = context;
	return wlb_report_data(
		&(struct wlb_report_wanted){.names = runs->texts, .count = runs->count, .steps_most = STEPS_MOST},
		error);
}

/* Returns WLB_EXIT_DONE, else the exit code. */
static int find_runs(const struct request *request, struct runs *runs, struct wlb_error *error)
{
	if (request->runs.count > WLB_REPORT_RUNS_MAX) {
		wlb_fail(error, "%d runs: a page has %d at most", request->runs.count, WLB_REPORT_RUNS_MAX);
		return WLB_EXIT_USAGE;
	}
	for (; runs->count < request->runs.count; runs->count++) {
		int found = wlb_run_name_find(request->runs.texts[runs->count], runs->names[runs->count], error);
		if (found != WLB_EXIT_DONE)
			return found;
		runs->texts[runs->count] = runs->names[runs->count];
	}
	return WLB_EXIT_DONE;
}

/* Where it is, and how a browser on another machine gets there. */
static void print_address(const struct wlb_page_server *server)
{
	char host[256] = "";
	const struct passwd *user = getpwuid(getuid());
	int port = wlb_page_server_port(server);
	gethostname(host, sizeof(host) - 1);
	printf("http://127.0.0.1:%d/%s/\n", port, wlb_page_server_token(server));
	wlb_show_line(stdout, "From another machine, first: ssh -N -L %d:127.0.0.1:%d %s%s%s", port, port,
	              user != NULL ? user->pw_name : "", user != NULL ? "@" : "", host);
	printf("Whoever has the address can read the page. Ctrl-C ends it.\n");
	fflush(stdout);
}

/* Blocks the signals that end the program, for all threads. Returns a descriptor that is readable when one has come. */
static int catch_signals(struct wlb_error *error)
{
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGHUP);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	int fd = signalfd(-1, &ends, SFD_CLOEXEC);
	return fd >= 0 ? fd : wlb_fail(error, "signals cannot be awaited: %s", strerror(errno));
}

/* Returns when a signal has come or the session has ended. A terminal is not read, since the program may be in its
 * background; another input is read until its end. */
static void await_end(int signals)
{
	char unread[4096];
	struct pollfd ends[] = {
		{.fd = signals, .events = POLLIN},
		{.fd = STDIN_FILENO, .events = isatty(STDIN_FILENO) ? 0 : POLLIN},
	};
	for (;;) {
		if (poll(ends, 2, -1) < 0)
			continue;
		if (ends[0].revents != 0 || (ends[1].revents & (POLLERR | POLLNVAL)) != 0)
			return;
		if (ends[1].revents != 0 && (ends[1].events == 0 || read(STDIN_FILENO, unread, sizeof(unread)) <= 0))
			return;
	}
}

static int open_page(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	struct runs runs = {.count = 0};
	int found = find_runs(request, &runs, error);
	if (found != WLB_EXIT_DONE)
		return found;
	json_t *data = ask(&runs, error); /* so that a run that cannot be read is said here */
	if (data == NULL)
		return WLB_EXIT_FAILED;
	json_decref(data);
	int signals = catch_signals(error);
	struct wlb_page_server *server = signals >= 0 ? wlb_page_server_start(request->port, ask, &runs, error) : NULL;
	if (server == NULL)
		return WLB_EXIT_FAILED;
	print_address(server);
	await_end(signals);
	wlb_page_server_stop(server);
	return WLB_EXIT_DONE;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(LIST, NULL, FIELD(runs), "RUN...", "one run, or up to 8 that are compared: " WLB_RUN_NAME_HELP),
         .required = true},
	{WLB_OPTION(INT, "port", FIELD(port), "N", "the port on this machine; 0: any that is free"), .max = 65535,
         .initial = "0"},
};

static const struct wlb_option_table table = {
	.command = "wlb open",
	.about = "Serves the page of 'wlb report' on this machine's loopback, for your own browser, and renews it "
		 "every few "
		 "seconds while the run goes on. It prints the address, which has a random token, and how a browser on "
		 "another machine gets there through ssh. It ends with Ctrl-C, with the terminal, and with the end of "
		 "its "
		 "standard input.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

static const struct wlb_command command = {
	.name = "open",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = open_page,
};

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, "");
	return wlb_command_main(&command, argc, argv);
}
