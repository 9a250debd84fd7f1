#include "checks/links/check_links.h"

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks/links/bounds.h"
#include "checks/links/messages.h"
#include "worker/comm/mpi_components.h"
#include "worker/launch/launch.h"

struct check_links_options {
	double seconds;
	bool times;
};

static const struct wlb_option rows[] = {
	{WLB_OPTION(REAL, "seconds", offsetof(struct check_links_options, seconds), "X",
                    "how long a message may take: a node that has no answer from another by then does not reach it"),
         .min = 0.1, .max = 600, .initial = "3"},
	{WLB_OPTION(
		FLAG, "times", offsetof(struct check_links_options, times), NULL,
		"where all nodes reach each other, measure how long each pair takes to exchange a message, and print "
		"it; of 64 ranks at most")},
	{WLB_OPTION(VERSION, "version", 0, NULL, "print the version and exit")},
};

static const struct wlb_option_table table = {
	.command = "wlb check-links",
	.about = "Says which nodes of a job do not reach each other by MPI, the transport of training on CPUs. Start "
		 "it in "
		 "the job with one rank on each node: srun --mpi=pmix --ntasks-per-node=1 wlb check-links.",
	.notes = "Each rank prints a line: 'NODE reaches N nodes', or 'NODE does not reach NODE...'; with --times "
		 "another: "
		 "'NODE exchanges N bytes with NODE in X s, NODE in X s...'. Exit code of a rank: 0: it reaches its "
		 "peers; 1: not all of them; 2: wrong usage, or the links could not be checked.",
	.options = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
};

/* A rank that waits longer for the others ends: MPI itself has no bound. */
static void on_alarm(int number)
{
	static const char text[] =
		"wlb check-links: MPI did not start on all nodes in time: check the nodes of the job\n";
	(void)number;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(WLB_EXIT_USAGE);
	_exit(WLB_EXIT_USAGE);
}

static void bound(const struct check_links_options *options)
{
	struct sigaction action = {.sa_handler = on_alarm};
	sigaction(SIGALRM, &action, NULL);
	alarm(WLB_CHECK_LINKS_SET_UP_S + (unsigned)options->seconds +
	      (options->times ? WLB_CHECK_LINKS_TIMES_MOST_S : 0));
}

/* Writes which nodes this rank reaches; returns the number of those that it does not. */
static int write_reached(const struct wlb_launch *launch, const int *peers, int count, const int *answered, FILE *text)
{
	int missing = 0;
	fputs(wlb_launch_node(launch, launch->rank), text);
	for (int i = 0; i < count; i++)
		if (!answered[i])
			fprintf(text, "%s %s", missing++ == 0 ? " does not reach" : "",
			        wlb_launch_node(launch, peers[i]));
	if (missing == 0)
		fprintf(text, " reaches %d node%s", count, count == 1 ? "" : "s");
	fputc('\n', text);
	return missing;
}

/* Writes the pairs that were measured. */
static void write_times(const struct wlb_launch *launch, const int *peers, int count,
                        const struct wlb_pair_times *times, FILE *text)
{
	int written = 0;
	for (int i = 0; i < count; i++) {
		if (times->bytes == 0 || times->seconds[peers[i]] == 0.0)
			continue;
		if (written++ == 0)
			fprintf(text, "%s exchanges %d bytes with ", wlb_launch_node(launch, launch->rank),
			        times->bytes);
		else
			fputs(", ", text);
		fprintf(text, "%s in %.6f s", wlb_launch_node(launch, peers[i]), times->seconds[peers[i]]);
	}
	if (written > 0)
		fputc('\n', text);
}

/* Prints the lines of this rank at once, so that lines of ranks do not mix. Returns the number of nodes not reached. */
static int print_lines(const struct wlb_launch *launch, const int *peers, int count, const int *answered,
                       const struct wlb_pair_times *times)
{
	char *line = NULL;
	size_t bytes = 0;
	FILE *text = open_memstream(&line, &bytes);
	if (text == NULL)
		return -1;
	int missing = write_reached(launch, peers, count, answered, text);
	write_times(launch, peers, count, times, text);
	if (fclose(text) != 0)
		return -1;
	for (size_t sent = 0; sent < bytes;) {
		ssize_t n = write(STDOUT_FILENO, line + sent, bytes - sent);
		if (n <= 0)
			break;
		sent += (size_t)n;
	}
	free(line);
	return missing;
}

/* The peers of this rank that are on other nodes. */
static int peers_elsewhere(const struct wlb_launch *launch, int peers[WLB_LINK_PEERS_MOST])
{
	int count = wlb_link_peers(launch->rank, launch->size, peers), kept = 0;
	for (int i = 0; i < count; i++)
		if (launch->node_of[peers[i]] != launch->node_of[launch->rank])
			peers[kept++] = peers[i];
	return kept;
}

static int check_launched(const struct check_links_options *options, struct wlb_launch *launch, struct wlb_error *error)
{
	int peers[WLB_LINK_PEERS_MOST], answered[WLB_LINK_PEERS_MOST];
	struct wlb_pair_times times = {0};
	if (options->times && launch->size > WLB_LINK_PEERS_MOST) {
		wlb_fail(error, "--times: %d ranks: must be %d at most; start fewer", launch->size,
		         WLB_LINK_PEERS_MOST);
		return WLB_EXIT_USAGE;
	}
	bound(options);
	if (MPI_Init(NULL, NULL) != MPI_SUCCESS) {
		wlb_fail(error, "MPI does not start on %s", wlb_launch_node(launch, launch->rank));
		return WLB_EXIT_USAGE;
	}
	wlb_mpi_keep_components();
	int count = peers_elsewhere(launch, peers);
	int rc = wlb_exchange(peers, count, options->seconds, answered, error);
	if (rc == 1 && options->times)
		rc = wlb_pair_times_measure(launch->rank, launch->size, &times, error);
	if (rc < 0)
		fprintf(stderr, "wlb check-links: %s: %s\n", wlb_launch_node(launch, launch->rank), error->message);
	int missing = print_lines(launch, peers, count, answered, &times);
	int code = missing == 0 ? WLB_EXIT_DONE : missing > 0 ? WLB_EXIT_FAILED : WLB_EXIT_USAGE;
	if (rc != 1)
		_exit(code);
	wlb_launch_disconnect(launch);
	MPI_Finalize();
	return code;
}

static int check_read(int argc, char **argv, struct wlb_launch *launch, struct wlb_error *error)
{
	struct check_links_options options = {0};
	int asked = wlb_options_parse(&table, argc, argv, &options, error);
	int code = WLB_EXIT_USAGE;
	if (asked > 0)
		code = WLB_EXIT_DONE;
	else if (asked == WLB_OPTIONS_READ)
		code = check_launched(&options, launch, error);
	if (asked > 0 && launch->rank == 0)
		wlb_options_print(&table, (enum wlb_options_asked)asked, stdout);
	wlb_options_free(&table, &options);
	return code;
}

static int check_links(int argc, char **argv)
{
	struct wlb_error error = {0};
	int code = WLB_EXIT_USAGE;
	struct wlb_launch *launch = wlb_launch_open(&code, &error);
	int rank = launch != NULL ? launch->rank : 0;
	if (launch != NULL)
		code = check_read(argc, argv, launch, &error);
	if (code == WLB_EXIT_USAGE && rank == 0 && error.message[0] != '\0')
		fprintf(stderr, "wlb check-links: %s\n", error.message);
	wlb_launch_close(launch);
	return code;
}

const struct wlb_command wlb_command_check_links = {
	.name = "check-links",
	.options = &table,
	.values_bytes = sizeof(struct check_links_options),
	.main = check_links,
};
