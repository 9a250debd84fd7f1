/* The parts of wlb-check-node: known results, processes under a deadline, pieces of time, and the report. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks/node/bounds.h"
#include "checks/node/children.h"
#include "checks/node/known_product.h"
#include "checks/node/options.h"
#include "checks/node/pieces.h"
#include "checks/node/place.h"
#include "checks/node/place_children.h"
#include "checks/node/report.h"
#include "common/seconds.h"

static double at(const struct wlb_host_matrix *matrix, int64_t row, int64_t column)
{
	return wlb_dtype_load(matrix->dtype, matrix->values, row * matrix->columns + column);
}

/* Returns an element of the product, with a float32 sum of the terms in ascending or descending order. */
static float element(const struct wlb_known_product *p, int64_t i, int64_t j, int descending)
{
	int64_t depth = p->kind == WLB_PRODUCT_FORWARD ? p->in : p->kind == WLB_PRODUCT_INPUT_GRADIENT ? p->out : p->n;
	float sum = 0.0f;
	for (int64_t step = 0; step < depth; step++) {
		int64_t k = descending ? depth - 1 - step : step;
		double left = p->kind == WLB_PRODUCT_WEIGHT_GRADIENT ? at(&p->left, k, i) : at(&p->left, i, k);
		double right = p->kind == WLB_PRODUCT_FORWARD ? at(&p->right, j, k) : at(&p->right, k, j);
		sum += (float)left * (float)right;
	}
	return sum;
}

/* bfloat16 inputs, too, and sums that are rounded once. */
static void results_do_not_depend_on_the_order_of_sums(void **state)
{
	(void)state;
	const enum wlb_dtype dtypes[] = {WLB_FLOAT32, WLB_FLOAT64, WLB_BFLOAT16};
	struct wlb_known_product list[WLB_KNOWN_PRODUCTS];
	struct wlb_error error;
	for (int d = 0; d < 3; d++) {
		assert_int_equal(wlb_known_products_make(dtypes[d], 7, list, &error), 0);
		for (int p = 0; p < WLB_KNOWN_PRODUCTS; p++)
			for (int64_t e = 0; e < list[p].result.rows * list[p].result.columns; e += 97) {
				int64_t i = e / list[p].result.columns, j = e % list[p].result.columns;
				uint64_t stored[2] = {0}; /* an element of any type */
				wlb_dtype_store(list[p].result.dtype, stored, 0, element(&list[p], i, j, 0));
				assert_true(wlb_dtype_load(list[p].result.dtype, stored, 0) ==
				            at(&list[p].result, i, j));
				assert_true(element(&list[p], i, j, 0) == element(&list[p], i, j, 1));
			}
		wlb_known_products_free(list);
	}
}

static void one_bit_of_difference_is_named(void **state)
{
	(void)state;
	struct wlb_known_product list[WLB_KNOWN_PRODUCTS];
	struct wlb_error error;
	char text[128];
	assert_int_equal(wlb_known_products_make(WLB_FLOAT32, 1, list, &error), 0);
	const struct wlb_host_matrix *result = &list[0].result;
	uint32_t *got = malloc(wlb_matrix_bytes(result));
	memcpy(got, result->values, wlb_matrix_bytes(result));
	assert_int_equal(wlb_matrix_differs(result, got, text, sizeof(text)), 0);
	got[result->columns + 3] ^= 1u;
	assert_int_equal(wlb_matrix_differs(result, got, text, sizeof(text)), 1);
	assert_non_null(strstr(text, "element (1, 3) is "));
	assert_non_null(strstr(text, "; 1 of "));
	free(got);
	wlb_known_products_free(list);
}

enum { GOOD, REFUSES, IS_IN_USE, CRASHES, EXITS, HANGS, CHILDREN };

static int work(int index, const void *context, void *result, struct wlb_error *error)
{
	*(double *)result = *(const double *)context + index;
	if (index == REFUSES)
		return wlb_fail(error, "no memory for child %d", index);
	if (index == IS_IN_USE) {
		wlb_fail(error, "another process has child %d", index);
		return 1;
	}
	if (index == CRASHES) {
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	if (index == EXITS)
		_exit(9);
	while (index == HANGS)
		pause();
	return 0;
}

static void assert_described(const struct wlb_children *children, int index, enum wlb_child_end end, const char *words)
{
	char text[128];
	assert_int_equal(children->list[index].end, end);
	wlb_child_describe(children, index, text, sizeof(text));
	assert_non_null(strstr(text, words));
}

static void each_end_of_a_child_is_told(void **state)
{
	(void)state;
	struct wlb_children children;
	struct wlb_error error;
	const double base = 40.5;
	double from_s = wlb_now_s();
	signal(SIGCHLD, SIG_IGN); /* as some callers leave it */
	assert_int_equal(wlb_children_run(&children, CHILDREN, sizeof(double), work, &base, 1.0, &error), 0);
	assert_true(wlb_now_s() - from_s >= 1.0);
	assert_int_equal(children.list[GOOD].end, WLB_CHILD_DONE);
	assert_true(*(const double *)wlb_child_result(&children, GOOD) == 40.5);
	assert_true(*(const double *)wlb_child_result(&children, EXITS) == 40.5 + EXITS);
	assert_described(&children, REFUSES, WLB_CHILD_REFUSED, "no memory for child 1");
	assert_described(&children, IS_IN_USE, WLB_CHILD_IN_USE, "another process has child 2");
	assert_described(&children, CRASHES, WLB_CHILD_BROKEN, "signal 11");
	assert_described(&children, EXITS, WLB_CHILD_BROKEN, "exit code 9");
	assert_described(&children, HANGS, WLB_CHILD_LATE, "no answer within 1.0 s");
	wlb_children_free(&children);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left */
}

/* Judges CPUs whose children ended so; returns as wlb_place_children_judge. */
static int judge_ends(const struct wlb_child *ends, int count, struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_check_place cpus[] = {{.gpu = -1, .name = "cpu 0"}, {.gpu = -1, .name = "cpu 1"}};
	struct wlb_child list[2];
	memcpy(list, ends, (size_t)count * sizeof(*ends));
	const struct wlb_children children = {.count = count, .list = list, .limit_s = 1.0};
	const struct wlb_places places = {.count = count, .list = cpus};
	*report = (struct wlb_check_report){0};
	return wlb_place_children_judge(&children, &places, "products", report, error);
}

static void a_fault_is_told_before_what_could_not_be_made(void **state)
{
	(void)state;
	struct wlb_check_report *report = malloc(sizeof(*report));
	struct wlb_error error;
	struct wlb_child ends[] = {{.end = WLB_CHILD_REFUSED, .error = {"no memory"}},
	                           {.end = WLB_CHILD_BROKEN, .status = SIGSEGV}};
	assert_int_equal(judge_ends(ends, 2, report, &error), 0);
	assert_int_equal(report->findings[0].verdict, WLB_CHECK_FAILED);
	assert_non_null(strstr(report->findings[0].measured, "cpu 1: the process ended by signal 11"));
	ends[1].end = WLB_CHILD_LATE;
	assert_int_equal(judge_ends(ends, 2, report, &error), 0);
	assert_true(report->hangs);
	assert_non_null(strstr(report->findings[0].measured, "cpu 1: no answer"));
	ends[1].end = WLB_CHILD_DONE;
	assert_int_equal(judge_ends(ends, 2, report, &error), -1);
	assert_string_equal(error.message, "cpu 0: no memory");
	assert_int_equal(report->count, 0);
	free(report);
}

/* As by the OOM killer; a crash is that of the program on a faulty CPU. */
static void a_process_that_was_killed_says_nothing_of_its_cpu(void **state)
{
	(void)state;
	const int killing[] = {SIGKILL, SIGTERM, SIGXCPU}, crashing[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	struct wlb_check_report *report = malloc(sizeof(*report));
	struct wlb_error error;
	char words[64];
	for (int i = 0; i < 3; i++) {
		const struct wlb_child end = {.end = WLB_CHILD_BROKEN, .status = killing[i]};
		assert_int_equal(judge_ends(&end, 1, report, &error), -1);
		snprintf(words, sizeof(words), "cpu 0: could not be checked: killed by signal %d", killing[i]);
		assert_non_null(strstr(error.message, words));
		assert_int_equal(report->count, 0);
	}
	for (int i = 0; i < 5; i++) {
		const struct wlb_child end = {.end = WLB_CHILD_BROKEN, .status = crashing[i]};
		assert_int_equal(judge_ends(&end, 1, report, &error), 0);
		assert_int_equal(report->findings[0].verdict, WLB_CHECK_FAILED);
	}
	const struct wlb_child late = {.end = WLB_CHILD_LATE, .status = SIGKILL}; /* by this program */
	assert_int_equal(judge_ends(&late, 1, report, &error), 0);
	assert_true(report->hangs);
	free(report);
}

static int wait_to_be_told(int index, const void *context, void *result, struct wlb_error *error)
{
	(void)index, (void)context, (void)error;
	atomic_int *told = result;
	while (atomic_load(told) == 0)
		usleep(1000);
	atomic_store(told, 2);
	return 0;
}

/* One process waits for its parent while others begin and end. */
static void children_run_beside_others(void **state)
{
	(void)state;
	struct wlb_children waiting, hanging, others;
	struct wlb_error error;
	const double base = 1.0;
	assert_int_equal(wlb_children_start(&waiting, 1, sizeof(atomic_int), wait_to_be_told, NULL, &error), 0);
	assert_int_equal(wlb_children_start(&hanging, 1, sizeof(atomic_int), wait_to_be_told, NULL, &error), 0);
	assert_int_equal(wlb_children_run(&others, 1, sizeof(double), work, &base, 10.0, &error), 0);
	assert_int_equal(others.list[0].end, WLB_CHILD_DONE);
	assert_int_equal(wlb_children_left(&waiting), 1);
	atomic_store((atomic_int *)wlb_child_result(&waiting, 0), 1);
	wlb_children_finish(&waiting, 10.0);
	assert_int_equal(waiting.list[0].end, WLB_CHILD_DONE);
	assert_int_equal(*(int *)wlb_child_result(&waiting, 0), 2);
	assert_int_equal(wlb_children_left(&waiting), 0);
	wlb_children_finish(&hanging, 0.05);
	assert_described(&hanging, 0, WLB_CHILD_LATE, "no answer within 0.1 s");
	wlb_children_free(&waiting);
	wlb_children_free(&hanging);
	wlb_children_free(&others);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left */
}

struct files {
	char output[32], error[32];
	int pipe_is_open;
};

static int list_files(int index, const void *context, void *result, struct wlb_error *error)
{
	struct files *files = result;
	(void)index;
	if (readlink("/proc/self/fd/1", files->output, sizeof(files->output) - 1) < 0 ||
	    readlink("/proc/self/fd/2", files->error, sizeof(files->error) - 1) < 0)
		return wlb_fail(error, "no /proc");
	files->pipe_is_open = fcntl(*(const int *)context, F_GETFD) >= 0;
	return 0;
}

/* Else a child that hangs in the kernel, and cannot be killed, would hold the pipe from which a caller reads. */
static void members_hold_no_file_of_the_caller(void **state)
{
	(void)state;
	int ends[2];
	struct wlb_children children;
	struct wlb_error error;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(wlb_children_run(&children, 1, sizeof(struct files), list_files, &ends[1], 10.0, &error), 0);
	const struct files *files = wlb_child_result(&children, 0);
	assert_int_equal(children.list[0].end, WLB_CHILD_DONE);
	assert_string_equal(files->output, "/dev/null");
	assert_string_equal(files->error, "/dev/null");
	assert_false(files->pipe_is_open);
	wlb_children_free(&children);
	close(ends[0]);
	close(ends[1]);
}

/* A clock of its own: every third operation takes 50 times as long, as if something else had run. */
static double disturbed_s(struct wlb_device *device, void *context, int count, struct wlb_error *error)
{
	(void)device, (void)error;
	int *calls = context;
	return count * (++*calls % 3 == 0 ? 50e-3 : 1e-3);
}

static void few_disturbed_pieces_do_not_change_the_fast_tenth(void **state)
{
	(void)state;
	struct wlb_pieces pieces;
	struct wlb_error error;
	int calls = 0;
	assert_int_equal(wlb_pieces_measure(NULL, disturbed_s, &calls, 0.02, &pieces, &error), 0);
	assert_true(pieces.fast_s == 1e-3 && pieces.fastest_s == 1e-3);
	assert_true(pieces.busy_s > 10e-3);
	assert_true(pieces.elapsed_s >= 0.0149 && pieces.elapsed_s < 5.0);
}

/* Four of five operations take longer, and one in fifty takes no time to speak of. */
static double mostly_disturbed_s(struct wlb_device *device, void *context, int count, struct wlb_error *error)
{
	(void)device, (void)error;
	int *calls = context;
	++*calls;
	return count * (*calls % 50 == 1 ? 1e-6 : *calls % 5 == 0 ? 1e-3 : 50e-3);
}

static void the_fast_tenth_and_the_fastest_are_of_undisturbed_pieces(void **state)
{
	(void)state;
	struct wlb_pieces pieces;
	struct wlb_error error;
	int calls = 0;
	assert_int_equal(wlb_pieces_measure(NULL, mostly_disturbed_s, &calls, 0.02, &pieces, &error), 0);
	assert_true(fabs(pieces.fast_s - 1e-3) < 1e-9);
	assert_true(fabs(pieces.fastest_s - 1e-6) < 1e-9);
}

static bool is_virtual(const char *cpuinfo)
{
	char path[] = "/tmp/wlb-cpuinfo-XXXXXX";
	int file = mkstemp(path);
	assert_int_equal(write(file, cpuinfo, strlen(cpuinfo)), strlen(cpuinfo));
	close(file);
	bool found = wlb_is_virtual_machine(path);
	unlink(path);
	return found;
}

static void a_virtual_machine_is_known_by_its_flag(void **state)
{
	(void)state;
	assert_true(is_virtual("processor\t: 0\nflags\t\t: fpu vme hypervisor lahf_lm\nprocessor\t: 1\n"));
	assert_true(is_virtual("flags : fpu hypervisor\n"));
	assert_false(is_virtual("processor\t: 0\nmodel name\t: hypervisor\nflags\t\t: fpu no_hypervisor vme\n"));
	assert_false(is_virtual("Features\t: fp asimd\n"));
	assert_false(is_virtual(""));
	assert_false(wlb_is_virtual_machine("/no/such/file"));
}

static void cpus_are_divided_in_their_order(void **state)
{
	(void)state;
	struct wlb_places places;
	struct wlb_error error;
	int cpus = wlb_cpu_count(&error);
	assert_true(cpus > 0);
	assert_int_equal(wlb_places_of_cpus(1, &places, &error), 0);
	assert_int_equal(places.count, cpus);
	for (int i = 0; i < cpus; i++)
		assert_true(CPU_COUNT(&places.list[i].mask) == 1 && places.list[i].cpus == 1 && places.list[i].gpu < 0);
	wlb_places_free(&places);
	assert_int_equal(wlb_places_of_cpus(cpus, &places, &error), 0);
	assert_int_equal(places.count, 1);
	assert_int_equal(CPU_COUNT(&places.list[0].mask), cpus);
	wlb_places_free(&places);
	assert_int_equal(wlb_places_of_cpus(cpus + 1, &places, &error), 0);
	assert_int_equal(places.count, 1);
	wlb_places_free(&places);
	if (cpus > 1) { /* one CPU is left over */
		assert_int_equal(wlb_places_of_cpus(cpus - 1, &places, &error), 0);
		assert_int_equal(places.count, cpus == 2 ? 2 : 1);
		wlb_places_free(&places);
	}
}

static void the_reason_is_one_short_line(void **state)
{
	(void)state;
	struct wlb_check_report *report = calloc(1, sizeof(*report));
	char reason[WLB_REASON_BYTES], longest[400];
	wlb_report_add(report, "products", WLB_CHECK_OK, "all");
	assert_int_equal(wlb_report_reason(report, reason), 0);
	wlb_finding_limit(wlb_report_add(report, "disk /a\n\"b'$(c)", WLB_CHECK_FAILED, "two\nlines \x80 of %d", 5),
	                  "%d MiB/s", 3);
	wlb_report_add(report, "memory", WLB_CHECK_FAILED, "later");
	assert_int_equal(wlb_report_reason(report, reason), 1);
	assert_string_equal(reason, "disk /a? b  (c): two?lines ? of 5; limit: 3 MiB/s");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	report->count = 0;
	wlb_report_add(report, "link", WLB_CHECK_FAILED, "%s", longest);
	assert_int_equal(wlb_report_reason(report, reason), 1);
	assert_int_equal(strlen(reason), WLB_REASON_BYTES - 1);
	assert_string_equal(reason + WLB_REASON_BYTES - 4, "...");
	free(report);
}

static void a_full_report_keeps_what_came_first(void **state)
{
	(void)state;
	struct wlb_check_report *report = calloc(1, sizeof(*report));
	char reason[WLB_REASON_BYTES];
	for (int i = 0; i < WLB_FINDINGS_MOST + 5; i++)
		wlb_report_add(report, "disk", WLB_CHECK_FAILED, "%d", i);
	assert_int_equal(report->count, WLB_FINDINGS_MOST);
	assert_int_equal(wlb_report_reason(report, reason), 1);
	assert_string_equal(reason, "disk: 0");
	free(report);
}

/* A node with many GPUs whose last finding of all is a good one. */
static void a_failure_is_not_replaced_in_a_full_report(void **state)
{
	(void)state;
	struct wlb_check_report *report = calloc(1, sizeof(*report));
	char reason[WLB_REASON_BYTES];
	for (int i = 1; i < WLB_FINDINGS_MOST + 5; i++)
		wlb_report_add(report, "memory", i == WLB_FINDINGS_MOST + 2 ? WLB_CHECK_FAILED : WLB_CHECK_OK, "%d", i);
	assert_int_equal(report->count, WLB_FINDINGS_MOST);
	assert_int_equal(wlb_report_reason(report, reason), 1);
	assert_string_equal(reason, "memory: 66");
	free(report);
}

/* `wlb run` waits so long for a check, and takes one that has not ended by then for a node that cannot be checked. */
static void all_bounds_together_are_below_that_of_the_check(void **state)
{
	char *arguments[] = {"wlb-check-node", NULL};
	struct wlb_check_options options = {0};
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_options_parse(&wlb_check_option_table, 1, arguments, &options, &error), WLB_OPTIONS_READ);
	assert_true(options.answer_s == WLB_CHECK_GPU_ANSWER_S);
	options.disk_mib = WLB_CHECK_SUSPECT_DISK_MIB;
	options.disk_mib_per_s = WLB_CHECK_SUSPECT_DISK_MIB_PER_S;
	double opens_s = (2.0 + WLB_CHECK_MEASUREMENTS) * options.answer_s;
	double speed_s = 0.4 * options.seconds;
	double work_s = WLB_CHECK_MEASUREMENTS * speed_s + 0.6 * options.seconds + 0.02 * options.memory_mib;
	double folder_s = WLB_CHECK_FOLDER_ANSWER_S + 2.0 * options.disk_mib / options.disk_mib_per_s;
	double sum_s = 3.0 * options.answer_s + opens_s + WLB_CHECK_LATE * work_s + WLB_CHECK_PAUSES_S + folder_s;
	assert_true(sum_s + 1.0 <= WLB_CHECK_NODE_MOST_S);
	wlb_options_free(&wlb_check_option_table, &options);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_do_not_depend_on_the_order_of_sums),
		cmocka_unit_test(one_bit_of_difference_is_named),
		cmocka_unit_test(each_end_of_a_child_is_told),
		cmocka_unit_test(a_fault_is_told_before_what_could_not_be_made),
		cmocka_unit_test(a_process_that_was_killed_says_nothing_of_its_cpu),
		cmocka_unit_test(children_run_beside_others),
		cmocka_unit_test(members_hold_no_file_of_the_caller),
		cmocka_unit_test(few_disturbed_pieces_do_not_change_the_fast_tenth),
		cmocka_unit_test(the_fast_tenth_and_the_fastest_are_of_undisturbed_pieces),
		cmocka_unit_test(a_virtual_machine_is_known_by_its_flag),
		cmocka_unit_test(cpus_are_divided_in_their_order),
		cmocka_unit_test(all_bounds_together_are_below_that_of_the_check),
		cmocka_unit_test(the_reason_is_one_short_line),
		cmocka_unit_test(a_full_report_keeps_what_came_first),
		cmocka_unit_test(a_failure_is_not_replaced_in_a_full_report),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
