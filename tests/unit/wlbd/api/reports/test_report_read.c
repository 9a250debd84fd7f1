#include "coordinator/wlbd/api/reports/report_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/api/reports/processes_read.h"
#include "coordinator/wlbd/http/fields.h"

#define REPORT "{\"attempt_id\":\"6f1c5b5e-4a53-4c8e-9a39-3a8c2b1d0e4f\",\"source\":\"%s\",\"node\":\"%s\",%s}"

#define STEP(rank, step) "[" #rank "," #step ",1,0,1,1.5,0,0,null,null,[]]"

static json_t *body_of(const char *source, const char *node, const char *more)
{
	char text[1024];
	snprintf(text, sizeof(text), REPORT, source, node, more);
	json_t *body = json_loads(text, 0, NULL);
	assert_non_null(body);
	return body;
}

static int read_it(const char *more)
{
	struct wlbd_report report;
	struct wlb_error error;
	json_t *body = body_of("node", "n1", more);
	int rc = wlbd_report_read(body, &report, &error);
	json_decref(body);
	return rc;
}

static void test_reads(void **state)
{
	struct wlbd_report report;
	struct wlb_error error;
	json_t *body = body_of(
		"node", "n1",
		"\"rank\":2,\"ranks\":[2,3],\"step\":7,\"stepd\":\"gone\",\"exits\":[{\"rank\":3,\"code\":137}]");
	(void)state;
	assert_int_equal(wlbd_report_read(body, &report, &error), 0);
	assert_string_equal(report.node, "n1");
	assert_false(report.launcher);
	assert_int_equal(report.rank, 2);
	assert_int_equal(report.step, 7);
	assert_true(report.stepd_gone);
	assert_int_equal(json_array_size(report.ranks), 2);
	assert_int_equal(json_array_size(report.exits), 1);
	assert_null(report.lost_ranks);
	json_decref(body);
	assert_int_equal(read_it("\"step\":7"), -1); /* no rank */
	assert_int_equal(read_it("\"rank\":0,\"stepd\":\"well\""), -1);
	assert_int_equal(read_it("\"rank\":0,\"ranks\":[-1]"), -1);
	assert_int_equal(read_it("\"rank\":0,\"ranks\":[\"0\"]"), -1);
	assert_int_equal(read_it("\"rank\":0,\"lost_ranks\":[0]"), -1);
	assert_int_equal(read_it("\"rank\":0,\"exits\":[{\"rank\":0}]"), -1);
	assert_int_equal(read_it("\"rank\":0,\"steps\":[" STEP(0, 1) "],\"lost_steps\":3"), 0);
	assert_int_equal(read_it("\"rank\":0,\"steps\":[[0,1]]"), -1);
	assert_int_equal(read_it("\"rank\":0,\"lost_steps\":-1"), -1);
	assert_int_equal(read_it("\"rank\":0,\"exits\":[{\"rank\":0,\"code\":256}]"), -1);
}

#define PROCESSES(entry) "\"rank\":0,\"processes\":{\"running\":3,\"faulty\":[" entry "]}"
#define PROCESS(rank, task, state) "{\"rank\":" #rank ",\"task\":" #task ",\"pid\":9,\"state\":\"" state "\""

static void test_processes(void **state)
{
	struct wlbd_report report;
	struct wlbd_node_processes processes;
	json_t *body = body_of("node", "n1",
	                       PROCESSES(PROCESS(12, 1, "dead") "}," PROCESS(
				       1, 1, "waiting") ",\"launcher\":\"torchrun\",\"for_s\":26,\"nodes\":3}"));
	(void)state;
	assert_int_equal(wlbd_report_read(body, &report, NULL), 0);
	wlbd_processes_read(report.processes, &processes);
	assert_int_equal(processes.running, 3);
	assert_int_equal(processes.count, 2);
	assert_int_equal(processes.list[0].rank, 12);
	assert_int_equal(processes.list[0].pid, 9);
	assert_int_equal(processes.list[0].fault, WLBD_PROCESS_IS_DEAD);
	assert_int_equal(processes.list[1].fault, WLBD_LAUNCHER_WAITS);
	assert_string_equal(processes.list[1].launcher, "torchrun");
	assert_int_equal(processes.list[1].for_s, 26);
	assert_int_equal(processes.list[1].nodes, 3);
	json_decref(body);
	assert_int_equal(read_it(PROCESSES(PROCESS(0, 0, "stopped") "}")), 0);
	assert_int_equal(read_it(PROCESSES(PROCESS(0, 0, "asleep") "}")), -1);
	assert_int_equal(read_it(PROCESSES(PROCESS(-1, 0, "stopped") "}")), -1);
	assert_int_equal(read_it(PROCESSES(PROCESS(0, 0, "waiting") ",\"launcher\":\"a\"}")), -1);
	assert_int_equal(read_it(PROCESSES("{\"rank\":0,\"pid\":9,\"state\":\"dead\"}")), -1);
	assert_int_equal(read_it(PROCESSES("1")), -1);
	assert_int_equal(read_it("\"rank\":0,\"processes\":{\"faulty\":[]}"), -1);
	assert_int_equal(read_it("\"rank\":0,\"processes\":{\"running\":1,\"faulty\":[0,0,0,0,0,0,0,0,0]}"), -1);
}

#define RUNNING(spans) "\"rank\":0,\"processes\":{\"running\":3,\"faulty\":[],\"ranks\":[" spans "]}"

static void test_ranks_that_run(void **state)
{
	struct wlbd_report report;
	struct wlbd_node_processes processes;
	json_t *body = body_of("node", "n1", RUNNING("[4,2],[9,1]"));
	(void)state;
	assert_int_equal(wlbd_report_read(body, &report, NULL), 0);
	wlbd_processes_read(report.processes, &processes);
	assert_int_equal(processes.span_count, 2);
	assert_int_equal(processes.spans[0].first, 4);
	assert_int_equal(processes.spans[0].count, 2);
	assert_int_equal(processes.spans[1].first, 9);
	json_decref(body);
	assert_int_equal(read_it(RUNNING("")), 0);
	assert_int_equal(read_it(RUNNING("[1048576,1]")), 0);
	assert_int_equal(read_it(RUNNING("[0,4096]")), 0);
	assert_int_equal(read_it(RUNNING("[1048577,1]")), -1);
	assert_int_equal(read_it(RUNNING("[0,4097]")), -1);
	assert_int_equal(read_it(RUNNING("[0,4096],[5000,1]")), -1);
	assert_int_equal(read_it(RUNNING("[-1,1]")), -1);
	assert_int_equal(read_it(RUNNING("[0,0]")), -1);
	assert_int_equal(read_it(RUNNING("[0]")), -1);
	assert_int_equal(read_it(RUNNING("[\"0\",1]")), -1);
	assert_int_equal(read_it(RUNNING("0")), -1);
	assert_int_equal(read_it(RUNNING("[0,1],[2,1],[4,1],[6,1],[8,1],[10,1],[12,1],[14,1],[16,1],[18,1],[20,1],"
	                                 "[22,1],[24,1],[26,1],[28,1],[30,1],[32,1]")),
	                 -1);
}

static void test_arrays_are_bounded(void **state)
{
	struct wlbd_report report;
	struct wlb_error error;
	static const char *const names[] = {"ranks", "lost_ranks", "exits"};
	(void)state;
	for (int i = 0; i < 3; i++) {
		json_t *body = body_of("node", "n1", "\"rank\":0");
		json_t *many = json_array();
		for (int k = 0; k <= WLBD_NODE_RANKS_MAX; k++)
			json_array_append_new(many, json_null());
		json_object_set_new(body, names[i], many);
		assert_int_equal(wlbd_report_read(body, &report, &error), -1);
		assert_non_null(strstr(error.message, names[i]));
		json_decref(body);
	}
}

static bool belongs(const struct wlbd_attempt_nodes *nodes, const char *source, const char *node, const char *more)
{
	struct wlbd_report report;
	struct wlb_error error;
	json_t *body = body_of(source, node, more);
	assert_int_equal(wlbd_report_read(body, &report, &error), 0);
	bool result = wlbd_report_belongs(&report, nodes, &error) == 0;
	json_decref(body);
	return result;
}

static void allocate(struct wlbd_attempt_nodes *nodes, const char *hostlist)
{
	const struct wlb_slurm_job job = {.running = true, .nodes = (char *)hostlist};
	assert_int_equal(wlbd_attempt_nodes_set_allocation(nodes, &job), 0);
}

static void test_nodes(void **state)
{
	struct wlbd_attempt_nodes nodes = {0};
	(void)state;
	assert_true(belongs(&nodes, "node", "n9", "\"rank\":0")); /* nothing is known against it */
	assert_false(wlbd_attempt_nodes_have(&nodes, "n9"));
	allocate(&nodes, "n[1-3]");
	assert_true(belongs(&nodes, "node", "n3", "\"rank\":0"));
	assert_false(belongs(&nodes, "node", "n9", "\"rank\":0"));
	assert_true(belongs(&nodes, "run", "login", "\"rank\":0"));
	json_t *names = json_pack("[s,s,s]", "n9", "n2", "n1"); /* n9 is claimed and is not the job's */
	assert_int_equal(wlbd_attempt_nodes_set(&nodes, names, 0), 0);
	json_decref(names);
	assert_true(wlbd_attempt_nodes_have(&nodes, "n1"));
	assert_true(belongs(&nodes, "node", "n2", "\"rank\":0"));
	assert_false(belongs(&nodes, "node", "n3", "\"rank\":0"));
	assert_false(belongs(&nodes, "node", "n9", "\"rank\":0"));
	assert_false(wlbd_attempt_nodes_have(&nodes, "n9"));
	wlbd_attempt_nodes_free(&nodes);
}

static void test_ranks(void **state)
{
	struct wlbd_attempt_nodes nodes = {.world_size = 4};
	(void)state;
	assert_true(belongs(&nodes, "node", "n1", "\"rank\":3"));
	assert_false(belongs(&nodes, "node", "n1", "\"rank\":4"));
	json_t *names = json_pack("[s,s,s,s]", "n2", "n1", "n2", "n1"); /* dealt out in turn */
	assert_int_equal(wlbd_attempt_nodes_set_ranks(&nodes, names), 0);
	json_decref(names);
	assert_int_equal(wlbd_attempt_nodes_max(&nodes), 2);
	assert_int_equal(wlbd_attempt_nodes_ranks_max(&nodes, "n2"), 2);
	assert_true(belongs(&nodes, "node", "n2", "\"rank\":0,\"ranks\":[0,2],\"lost_ranks\":[{\"rank\":2}]"));
	assert_false(belongs(&nodes, "node", "n1", "\"rank\":0"));
	assert_false(belongs(&nodes, "node", "n2", "\"rank\":0,\"ranks\":[0,1]"));
	assert_false(belongs(&nodes, "node", "n2", "\"rank\":0,\"lost_ranks\":[{\"rank\":3}]"));
	assert_false(belongs(&nodes, "node", "n2", "\"rank\":0,\"exits\":[{\"rank\":4,\"code\":0}]"));
	assert_false(belongs(&nodes, "node", "n2", "\"rank\":0,\"ranks\":[0,2,2]")); /* more than there are */
	/* A launcher has ranks of its own; its task is one of the attempt's. */
	assert_true(belongs(&nodes, "node", "n2", PROCESSES(PROCESS(12, 2, "stopped") "}")));
	assert_false(belongs(&nodes, "node", "n2", PROCESSES(PROCESS(2, 1, "stopped") "}")));
	/* Of steps a rank may have any number. */
	assert_true(
		belongs(&nodes, "node", "n2", "\"rank\":0,\"steps\":[" STEP(0, 1) "," STEP(0, 2) "," STEP(2, 1) "]"));
	assert_false(belongs(&nodes, "node", "n2", "\"rank\":0,\"steps\":[" STEP(0, 1) "," STEP(1, 1) "]"));
	wlbd_attempt_nodes_free(&nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),          cmocka_unit_test(test_processes),
		cmocka_unit_test(test_ranks_that_run), cmocka_unit_test(test_arrays_are_bounded),
		cmocka_unit_test(test_nodes),          cmocka_unit_test(test_ranks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
