/* Any processes of a report: refused with a reason, or within all bounds. What they are is judged: evidence is
 * printable and ended. */
#include <string.h>

#include "coordinator/wlbd/api/reports/processes_read.h"
#include "coordinator/wlbd/detection/rank_processes.h"
#include "coordinator/wlbd/http/fields.h"
#include "tests/fuzz/scratch.h"

static void check(const struct wlbd_node_processes *processes)
{
	struct wlbd_process_faults faults = {0};
	const struct wlbd_processes_node nodes[] = {{.name = "n1", .processes = processes}, {.name = "n2", .index = 1}};
	struct wlbd_rank_processes ranks;
	must(processes->running >= 0 && processes->count >= 0 && processes->count <= WLBD_FAULTY_MAX);
	for (int i = 0; i < processes->count; i++) {
		const struct wlbd_faulty_process *process = &processes->list[i];
		must(process->rank >= 0 && process->rank <= WLBD_RANKS_MAX && process->pid > 0);
		must(process->fault >= 0 && process->fault < WLBD_PROCESS_FAULTS && process->for_s >= 0);
		must(process->nodes >= 0 && memchr(process->launcher, '\0', sizeof(process->launcher)) != NULL);
	}
	wlbd_rank_processes_fill(&ranks, nodes, 2);
	must(ranks.count <= 2 * (WLBD_NODE_RANKS_MAX + WLBD_FAULTY_MAX));
	wlbd_rank_processes_free(&ranks);
	for (int64_t now_ms = 1000; now_ms < 12000; now_ms += 1000)
		wlbd_process_faults_judge(&faults, nodes, 2, 2, 8, now_ms);
	must(faults.count >= 0 && faults.count <= WLBD_PROCESS_FAULTS);
	must((faults.count > 0) == (processes->count > 0) || processes->list[0].fault == WLBD_LAUNCHER_WAITS);
	for (int i = 0; i < faults.count; i++)
		for (const char *c = faults.list[i].verdict.evidence; *c != '\0'; c++)
			must(*c >= ' ' && *c <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_error error = {0};
	struct wlbd_node_processes processes;
	const json_t *field = NULL, *faulty = NULL;
	json_t *body = wlbd_body_parse((const char *)data, bytes, &error);
	if (body == NULL || wlbd_processes_check(body, &field, &faulty, &error) != 0) {
		must(error.message[0] != '\0');
	} else if (field != NULL) {
		wlbd_processes_read(field, &processes);
		check(&processes);
	}
	json_decref(body);
	return 0;
}
