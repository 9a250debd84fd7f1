/*
 * wlb-read-areas RANKS FILE COMMAND...: runs COMMAND, whose ranks find a node page with RANKS areas as those of a step
 * do, reads the areas as often as wlb-agent, and writes the steps that the ranks tell to FILE, one JSON object a line.
 * Returns the exit code of COMMAND.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/client/node_page.h"

enum { RANKS_MOST = 1024, PERIOD_MS = 1000, CHECK_MS = 20 };

struct reader {
	struct wlb_node_page *page;
	FILE *out;
	uint64_t next[RANKS_MOST];
};

static void write_number(FILE *out, const char *name, double value, int is_known)
{
	if (is_known && isfinite(value))
		fprintf(out, ",\"%s\":%.17g", name, value);
	else
		fprintf(out, ",\"%s\":null", name);
}

static void write_transfers(FILE *out, const struct wlb_rank_trace *area, const struct wlb_trace_step *step)
{
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	int count = wlb_rank_trace_groups(area, groups);
	fprintf(out, ",\"transfers\":{");
	for (int i = 0; i < step->transfer_count; i++) {
		const struct wlb_trace_transfer *transfer = &step->transfers[i];
		if (transfer->group < 0 || transfer->group >= count)
			continue;
		fprintf(out, "%s\"%s\":[%llu,%.17g,%llu]", i > 0 ? "," : "", groups[transfer->group].name,
		        (unsigned long long)transfer->calls, transfer->blocked_s, (unsigned long long)transfer->bytes);
	}
	fprintf(out, "}}\n");
}

static void write_step(FILE *out, const struct wlb_rank_trace *area, const struct wlb_trace_step *step)
{
	fprintf(out, "{\"rank\":%d,\"step\":%lld", wlb_rank_trace_rank(area), (long long)step->step);
	write_number(out, "seconds", step->seconds, 1);
	write_number(out, "aside_s", step->aside_s, 1);
	write_number(out, "computed_s", step->computed_s, 1);
	write_number(out, "work", step->work, 1);
	write_number(out, "loader_s", step->loader_s, 1);
	write_number(out, "storage_s", step->storage_s, 1);
	write_number(out, "loss", step->loss, step->has_loss);
	write_transfers(out, area, step);
}

static void read_areas(struct reader *reader)
{
	const struct wlb_rank_trace *area;
	struct wlb_trace_step steps[WLB_TRACE_STEPS];
	for (int i = 0; (area = wlb_node_page_area(reader->page, i)) != NULL; i++) {
		size_t count = wlb_rank_trace_read_steps(area, &reader->next[i], steps, WLB_TRACE_STEPS);
		for (size_t s = 0; s < count; s++)
			write_step(reader->out, area, &steps[s]);
	}
}

static pid_t start(char **command)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	execvp(command[0], command);
	fprintf(stderr, "wlb-read-areas: %s: %s\n", command[0], strerror(errno));
	_exit(127);
}

/* Reads the areas until the command has ended, and once more then. Returns its exit code. */
static int watch(struct reader *reader, pid_t pid)
{
	int status = 0;
	int64_t read_ms = wlb_clock_ms();
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (wlb_clock_ms() - read_ms >= PERIOD_MS) {
			read_areas(reader);
			read_ms += PERIOD_MS;
		}
		wlb_clock_sleep_ms(CHECK_MS);
	}
	read_areas(reader);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(struct reader *reader, int ranks, char **command)
{
	struct wlb_error error;
	char path[64];
	int fd;
	reader->page = wlb_node_page_create("", ranks, &fd, &error); /* a trainer without a run has no attempt */
	if (reader->page == NULL) {
		fprintf(stderr, "wlb-read-areas: %s\n", error.message);
		return 1;
	}
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	setenv("WLB_NODE_PAGE", path, 1);
	pid_t pid = start(command);
	int code = pid > 0 ? watch(reader, pid) : 1;
	wlb_node_page_close(reader->page);
	return code;
}

int main(int argc, char **argv)
{
	static struct reader reader;
	int ranks = argc > 3 ? atoi(argv[1]) : 0;
	if (ranks < 1 || ranks > RANKS_MOST) {
		fprintf(stderr, "usage: wlb-read-areas RANKS FILE COMMAND...; RANKS is 1 to %d\n", RANKS_MOST);
		return 2;
	}
	reader.out = fopen(argv[2], "w");
	if (reader.out == NULL) {
		fprintf(stderr, "wlb-read-areas: %s: %s\n", argv[2], strerror(errno));
		return 1;
	}
	int code = run(&reader, ranks, argv + 3);
	return fclose(reader.out) == 0 ? code : 1;
}
