#include "coordinator/wlbd/api/records/record_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/http/fields.h"

#define UUID "6f1c0a52-7f0e-4f0e-8f3e-0c9d7c1f2a3b"

static struct wlbd_delivery delivery; /* its texts are those of a body that was freed */

/* Reads a delivery whose records are `records`. */
static int check(const char *records, struct wlb_error *error)
{
	char text[4096];
	snprintf(text, sizeof(text),
	         "{\"attempt_id\":\"" UUID "\",\"source\":\"rank0\",\"job_id\":12,\"first_seq\":7,\"records\":[%s]}",
	         records);
	json_t *body = wlbd_body_parse(text, strlen(text), error);
	assert_non_null(body);
	int rc = wlbd_delivery_check(body, &delivery, error);
	if (rc == 0)
		assert_int_equal(delivery.first_seq, 7);
	json_decref(body);
	return rc;
}

#define KIND                                                                                                           \
	"\"kinds\":[{\"model\":\"H100\",\"memory_bytes\":85000000000,\"driver\":\"\",\"driver_cuda\":\"13.0\","        \
	"\"cuda\":\"13.0\",\"gpus\":1}],"

#define SAID "\"step\":3,\"source\":\"hook\",\"stream\":0,\"generation\":0,\"at\":9"

static void test_every_type_is_accepted(void **state)
{
	struct wlb_error error = {0};
	(void)state;
	int rc = check(
		"{\"seq\":7,\"time\":1790000000.5,\"type\":\"attempt\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":"
		"1,"
		"\"dp\":8},\"world_size\":8,\"rank_map\":[{\"rank\":0,\"node\":\"n1\",\"local_rank\":0},"
		"{\"rank\":7,\"node\":\"n2\",\"local_rank\":0}],\"model\":{},"
		"\"checkpoint\":null,\"saves_on_request\":true}},"
		"{\"seq\":8,\"time\":1,\"type\":\"step\",\"data\":{\"step\":1,\"loss\":null,\"tokens\":4096}},"
		"{\"seq\":9,\"time\":1,\"type\":\"checkpoint\",\"data\":{\"step\":1,\"path\":\"a\"}},"
		"{\"seq\":10,\"time\":1,\"type\":\"fault\",\"data\":{\"kind\":\"slow_link\",\"rank\":3}},"
		"{\"seq\":11,\"time\":1,\"type\":\"event\",\"data\":{\"kind\":\"x\",\"save\":{\"path\":\"a\",\"stall_"
		"s\":0.5}}},"
		"{\"seq\":12,\"time\":1,\"type\":\"attempt_end\",\"data\":{\"state\":\"complete\",\"exit_code\":0,"
		"\"error\":{\"text\":\"ValueError: x\",\"cause\":\"\",\"rank\":3,\"is_consequence\":true}}},"
		"{\"seq\":13,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":2,\"cp\":1,\"pp\":2,\"dp\":2},"
		"\"recompute\":\"full\",\"recompute_layers\":2,\"head_stages\":\"all\",\"step_s\":0.5,\"misfits\":[],"
		"\"reason\":\"x\","
		"\"placement\":[{\"switch\":\"\",\"nodes\":\"n1\",\"first_rank\":0,\"ranks\":8}],"
		"\"idle_local_ranks\":[{\"nodes\":\"n1\",\"first\":8,\"last\":9}],"
		"\"next\":[{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":1,\"dp\":8}}]}},"
		"{\"seq\":14,\"time\":1,\"type\":\"gpus\",\"data\":{" KIND "\"devices\":[0,1],\"ranks_per_gpu\":2}},"
		"{\"seq\":15,\"time\":1,\"type\":\"command\",\"data\":{\"command\":\"python "
		"train.py\",\"stdout\":\"/o\","
		"\"stdout_offset\":0,\"stderr\":\"/e\",\"labelled\":false}},"
		"{\"seq\":16,\"time\":1,\"type\":\"followed\",\"data\":{" SAID ",\"span\":2,\"interval_s\":0.5,"
		"\"is_step\":true,\"is_of_attempt\":false,\"values\":{\"loss\":\"nan\",\"x\":1,\"y\":\"-inf\"}}}",
		&error);
	if (rc != 0)
		fail_msg("%s", error.message);
	assert_int_equal(check("", &error), 0);
}

static void test_refusals_name_record_and_field(void **state)
{
	static const struct {
		const char *records;
		const char *parts[2];
	} cases[] = {
		{"7", {"records[0]", "object"}},
		{"{\"seq\":8,\"time\":1,\"type\":\"event\",\"data\":{\"kind\":\"x\"}}", {"seq", "7"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"event\",\"data\":{\"kind\":\"x\"}},"
	         "{\"seq\":7,\"time\":1,\"type\":\"event\",\"data\":{\"kind\":\"x\"}}",
	         {"records[1]", "seq"}},
		{"{\"seq\":7,\"time\":\"now\",\"type\":\"event\",\"data\":{\"kind\":\"x\"}}", {"time", "number"}},
		{"{\"seq\":7,\"time\":-1,\"type\":\"event\",\"data\":{\"kind\":\"x\"}}",
	         {"time", "-1 must be a number from 0 to 1e+11"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"followed\",\"data\":{" SAID "}}", {"values", "missing"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"followed\",\"data\":{\"step\":3,\"source\":\"rumour\"}}",
	         {"source", "tensorboard"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"followed\",\"data\":{" SAID ",\"span\":0,\"values\":{}}}",
	         {"span", "from 1"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"followed\",\"data\":{" SAID ",\"values\":{\"loss\":\"1\"}}}",
	         {"loss", "nan"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"followed\",\"data\":{" SAID ",\"values\":{\"loss\":2e300}}}",
	         {"loss", "1e+300"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"followed\",\"data\":{" SAID ",\"values\":{\"\":1}}}",
	         {"values", "1 to 63 bytes"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"rumour\",\"data\":{}}", {"type", "rumour"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"event\"}", {"data", "missing"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"step\",\"data\":{\"step\":1.5}}", {"step", "whole"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"step\",\"data\":{\"step\":-1}}", {"step", "-1"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"step\",\"data\":{\"step\":1,\"loss\":\"x\"}}", {"loss", "number"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"step\",\"data\":{\"step\":1,\"tokens\":9000000000000000000}}",
	         {"tokens", "from 0 to 1000000000000"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"step\",\"data\":{\"step\":1,\"step_time_s\":-1}}",
	         {"step_time_s", "from 0 to 1e+07"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"step\",\"data\":{\"step\":1,\"parts\":{\"forward_s\":\"x\"}}}",
	         {"parts", "forward_s"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"step\",\"data\":{\"step\":1,\"parts\":{"
	         "\"a0123456789b0123456789c0123456789d0123456789e0123456789f0123456789\":1}}}",
	         {"parts", "64 bytes"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"fault\",\"data\":{\"kind\":\"hang\",\"evidence\":[[{\"a\":1e30}]]}}",
	         {"evidence", "1e18"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"checkpoint\",\"data\":{\"step\":1}}", {"path", "missing"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"event\",\"data\":{\"kind\":\"x\",\"save\":7}}", {"save", "object"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"event\",\"data\":{\"kind\":\"x\",\"save\":{\"path\":\"a\",\"bytes\":"
	         "-1}}}",
	         {"bytes", "1000000000000000000"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"fault\",\"data\":{\"kind\":\"bad_luck\"}}", {"kind", "rank_lost"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"attempt_end\",\"data\":{\"state\":\"lost\"}}",
	         {"state", "complete"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"attempt_end\",\"data\":{\"state\":\"failed\",\"error\":{}}}",
	         {"error: field 'text'", "missing"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"attempt_end\",\"data\":{\"state\":\"failed\",\"error\":{\"text\":"
	         "\"x\","
	         "\"rank\":-1}}}",
	         {"error: field 'rank'", "from 0"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"command\",\"data\":{}}", {"command: field 'command'", "missing"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"command\",\"data\":{\"command\":\"a\",\"stdout_offset\":-1}}",
	         {"stdout_offset", "from 0"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"command\",\"data\":{\"command\":\"a\",\"labelled\":1}}",
	         {"labelled", "true or false"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"attempt\",\"data\":{\"world_size\":8,\"rank_map\":[{\"rank\":0}]}}",
	         {"rank_map[0]", "local_rank"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"attempt\",\"data\":{\"world_size\":300,\"rank_map\":["
	         "{\"rank\":299,\"node\":\"n1\",\"local_rank\":0},{\"rank\":0,\"node\":\"n1\",\"local_rank\":1},"
	         "{\"rank\":299,\"node\":\"n1\",\"local_rank\":0}]}}",
	         {"rank_map[2]", "rank 299 is listed twice"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"attempt\",\"data\":{\"world_size\":8,\"rank_map\":[],"
	         "\"layout\":{\"tp\":0,\"cp\":1,\"pp\":1,\"dp\":1}}}",
	         {"layout", "tp"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":1,\"dp\":1},"
	         "\"placement\":[{\"switch\":\"s1\"}]}}",
	         {"placement[0]", "nodes"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":1,\"dp\":1},"
	         "\"idle_local_ranks\":[{\"nodes\":\"n1\",\"first\":-1,\"last\":2}]}}",
	         {"idle_local_ranks[0]", "first"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":1048576,\"cp\":2,\"pp\":1,"
	         "\"dp\":1}}}",
	         {"layout", "2097152"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":1,\"dp\":1},"
	         "\"next\":[{\"layout\":{\"tp\":0}}]}}",
	         {"next[0]", "tp"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":1,\"dp\":1},"
	         "\"step_s\":-1}}",
	         {"plan", "step_s"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":2,\"dp\":1},"
	         "\"head_stages\":\"first\"}}",
	         {"head_stages", "all"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":1,\"dp\":1},"
	         "\"before\":{}}}",
	         {"before", "layout"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":1,\"dp\":1},"
	         "\"calibration\":{\"id\":3,\"uid\":-1}}}",
	         {"calibration", "uid"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":1,\"dp\":1},"
	         "\"calibration\":{\"id\":3,\"outvoted_operations\":[\"rope\",\"\"]}}}",
	         {"outvoted_operations[1]", "1 to 64"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":1,\"dp\":1},"
	         "\"calibration\":{\"id\":3,\"outvoted_operations\":[\"\\u001b[2J\"]}}}",
	         {"outvoted_operations[0]", "a-z"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"plan\",\"data\":{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":1,\"dp\":1},"
	         "\"calibration\":{\"id\":3,\"outvoted_parts\":{}}}}",
	         {"outvoted_parts", "list of 64"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"gpus\",\"data\":{" KIND "\"devices\":[0,-1],\"ranks_per_gpu\":2}}",
	         {"gpus", "devices"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"gpus\",\"data\":{" KIND "\"devices\":[0],\"ranks_per_gpu\":0}}",
	         {"gpus", "ranks_per_gpu"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"gpus\",\"data\":{" KIND "\"devices\":[0],\"ranks_per_gpu\":2}}",
	         {"gpus", "ranks_per_gpu"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"gpus\",\"data\":{" KIND "\"devices\":[],\"ranks_per_gpu\":1}}",
	         {"gpus", "devices"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"gpus\",\"data\":{\"kinds\":[{\"model\":\"a\",\"driver\":\"\","
	         "\"driver_cuda\":\"1\","
	         "\"cuda\":\"1\",\"memory_bytes\":1,\"gpus\":3}],\"devices\":[0,0],\"ranks_per_gpu\":1}}",
	         {"kinds[0]", "all kinds together"}},
		{"{\"seq\":7,\"time\":1,\"type\":\"gpus\",\"data\":{\"kinds\":[{\"model\":7}],\"devices\":[0],"
	         "\"ranks_per_gpu\":1}}",
	         {"kinds[0]", "model"}},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_error error = {0};
		assert_int_equal(check(cases[i].records, &error), -1);
		for (int k = 0; k < 2; k++)
			if (strstr(error.message, cases[i].parts[k]) == NULL)
				fail_msg("'%s' is not in: %s", cases[i].parts[k], error.message);
	}
}

static void test_body_must_be_a_shallow_object(void **state)
{
	struct wlb_error error;
	char deep[256];
	(void)state;
	memset(deep, '[', sizeof(deep));
	assert_null(wlbd_body_parse(deep, sizeof(deep), &error));
	assert_non_null(strstr(error.message, "deeper"));
	assert_null(wlbd_body_parse("[]", 2, &error));
	assert_null(wlbd_body_parse("{\"a\":1,\"a\":2}", 13, &error));
	assert_null(wlbd_body_parse("{", 1, &error));
	assert_non_null(strstr(error.message, "line 1"));
	assert_null(wlbd_body_parse("", 0, &error));
	assert_null(wlbd_body_parse("{\"a\":\"\\u0000\"}", 14, &error)); /* PostgreSQL could not store it */
	json_t *body = wlbd_body_parse("{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}", 45, &error);
	assert_non_null(body);
	json_decref(body);
}

#define END(seq, data) "{\"seq\":" #seq ",\"time\":1,\"type\":\"attempt_end\",\"data\":{" data "}}"

static void test_the_first_end_is_read(void **state)
{
	struct wlb_error error = {0};
	(void)state;
	assert_int_equal(check("{\"seq\":7,\"time\":1,\"type\":\"event\",\"data\":{\"kind\":\"x\"}}", &error), 0);
	assert_null(delivery.end.state);
	assert_int_equal(check(END(7, "\"state\":\"complete\",\"exit_code\":null"), &error), 0);
	assert_non_null(delivery.end.state);
	assert_false(delivery.end.has_exit_code);
	assert_int_equal(
		check(END(7, "\"state\":\"failed\",\"exit_code\":-9,\"first_exit\":{\"rank\":5,\"node\":\"n3\","
	                     "\"signal\":9}") "," END(8, "\"state\":\"failed\",\"exit_code\":3"),
	              &error),
		0);
	assert_true(delivery.end.has_exit_code);
	assert_int_equal(delivery.end.exit_code, -9);
	assert_int_equal(delivery.end.first_exit.rank, 5);
	assert_int_equal(delivery.end.first_exit.exit_code, 137);
	assert_int_equal(
		check(END(7, "\"state\":\"failed\",\"first_exit\":{\"rank\":5,\"node\":\"n3\",\"exit_code\":1}"),
	              &error),
		0);
	assert_int_equal(delivery.end.first_exit.exit_code, 1);
	static const char *const wrong[] = {"", ",\"exit_code\":0", ",\"exit_code\":256", ",\"signal\":128",
	                                    ",\"signal\":0,\"exit_code\":1"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char body[256];
		snprintf(body, sizeof(body),
		         END(7, "\"state\":\"failed\",\"first_exit\":{\"rank\":5,\"node\":\"n3\"%s}"), wrong[i]);
		assert_int_equal(check(body, &error), -1);
		assert_non_null(strstr(error.message, "first_exit"));
	}
}

static void test_uuid(void **state)
{
	static const char *const bad[] = {"", "6f1c0a52", "6f1c0a52-7f0e-4f0e-8f3e-0c9d7c1f2a3",
	                                  "6f1c0a52+7f0e-4f0e-8f3e-0c9d7c1f2a3b",
	                                  "6f1c0a52-7f0e-4f0e-8f3e-0c9d7c1f2a3g"};
	const char *value;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *body = json_pack("{s:s}", "attempt_id", bad[i]);
		assert_int_equal(wlbd_field_uuid(body, "attempt_id", &value, &error), -1);
		json_decref(body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_type_is_accepted),
		cmocka_unit_test(test_refusals_name_record_and_field),
		cmocka_unit_test(test_body_must_be_a_shallow_object),
		cmocka_unit_test(test_the_first_end_is_read),
		cmocka_unit_test(test_uuid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
