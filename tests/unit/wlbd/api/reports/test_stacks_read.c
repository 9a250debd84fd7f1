#include "coordinator/wlbd/api/reports/stacks_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/slurm/slurm_api.h"

#define BODY "{\"attempt_id\":\"6f1c5b5e-4a53-4c8e-9a39-3a8c2b1d0e4f\",\"node\":\"n2\",\"stacks_id\":17,\"ranks\":[%s]}"
#define RANK                                                                                                           \
	"{\"rank\":2,\"pid\":71,\"state\":\"T\",\"note\":\"why\",\"left_out\":1,\"secret\":1,\"threads\":["            \
	"{\"pid\":71,\"tid\":72,\"name\":\"a\",\"state\":\"S\",\"waits_in\":\"f\",\"frames\":[\"g+0x1 "                \
	"(h)\"],\"x\":{}}],"                                                                                           \
	"\"calls\":[[\"send\",\"pp\",4,512,0.5,null],[\"recv\",\"\",0,0,0,1e7]],\"nccl_ras\":[\"8 ranks\"]}"
#define THREAD "{\"pid\":1,\"tid\":1,\"name\":\"a\",\"state\":\"S\",\"frames\":[%s]}"

static json_t *body_of(const char *ranks)
{
	size_t size = strlen(ranks) + sizeof(BODY);
	char *text = malloc(size);
	snprintf(text, size, BODY, ranks);
	json_t *body = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(body);
	return body;
}

/* The message contains `words`. */
static void refuse(const char *ranks, const char *words)
{
	struct wlbd_stacks_body stacks;
	struct wlb_error error = {""};
	json_t *body = body_of(ranks);
	assert_int_equal(wlbd_stacks_read(body, &stacks, &error), -1);
	if (strstr(error.message, words) == NULL)
		fail_msg("'%s' does not have '%s'", error.message, words);
	json_decref(body);
}

/* A rank whose member `name` is `value`. */
static void refuse_member(const char *name, const char *value, const char *words)
{
	json_t *rank = json_loads(RANK, 0, NULL), *wrong = json_loads(value, JSON_DECODE_ANY, NULL);
	assert_non_null(wrong);
	json_object_set_new(rank, name, wrong);
	char *text = json_dumps(rank, 0);
	refuse(text, words);
	free(text);
	json_decref(rank);
}

static void what_is_stored_has_known_members_alone(void **state)
{
	(void)state;
	struct wlbd_stacks_body stacks;
	struct wlb_error error = {""};
	json_t *body = body_of(RANK);
	assert_int_equal(wlbd_stacks_read(body, &stacks, &error), 0);
	assert_string_equal(stacks.node, "n2");
	assert_int_equal(stacks.stacks_id, 17);
	char *text = wlbd_stacks_text(&stacks);
	json_t *stored = json_loads(text, 0, NULL), *expected = json_loads("[" RANK "]", 0, NULL);
	json_t *rank = json_array_get(expected, 0);
	json_object_del(rank, "secret");
	json_object_del(json_array_get(json_object_get(rank, "threads"), 0), "x");
	assert_true(json_equal(stored, expected));
	assert_int_equal(text[0], '[');
	free(text);
	json_decref(stored);
	json_decref(expected);
	json_decref(body);
	body = body_of("");
	assert_int_equal(wlbd_stacks_read(body, &stacks, &error), 0);
	json_decref(body);
}

static void members_have_bounds(void **state)
{
	(void)state;
	refuse("7", "ranks[0]: must be an object");
	refuse(RANK "," RANK, "ranks[1]: rank 2 is listed twice");
	refuse_member("rank", "-1", "field 'rank': -1 must be a whole number from 0");
	refuse_member("rank", "1e9", "field 'rank'");
	refuse_member("pid", "0", "field 'pid'");
	refuse_member("left_out", "-1", "field 'left_out'");
	refuse_member("task", "-1", "field 'task'");
	refuse_member("state", "\"Q\"", "field 'state': 'Q' must be a letter");
	refuse_member("state", "\"\"", "field 'state'");
	refuse_member("state", "\"TT\"", "a string of at most 1 bytes");
	refuse_member("note", "\"a\\u001b[2J\"", "field 'note': byte 27 must be a printable character");
	refuse_member("note", "\"\\u00e4\"", "printable");
	refuse_member("threads", "{}", "field 'threads'");
	refuse_member("threads", "[1]", "threads[0]: must be an object");
	refuse_member("threads", "[{\"pid\":1,\"tid\":1,\"name\":\"a\",\"state\":\"S\"}]",
	              "field 'frames': is missing");
	refuse_member("threads", "[{\"pid\":1,\"tid\":1,\"name\":\"a\",\"state\":\"S\",\"frames\":[5]}]",
	              "threads[0]: frames[0]: must be a string of at most 200 bytes");
	refuse_member("threads", "[{\"pid\":1,\"tid\":1,\"name\":\"\\n\",\"state\":\"S\",\"frames\":[]}]",
	              "field 'name'");
	refuse_member("calls", "[[\"send\",\"pp\",4,512,0.5]]", "calls[0]: must be an array of kind");
	refuse_member("calls", "[[\"steal\",\"pp\",4,512,0.5,1]]", "calls[0]");
	refuse_member("calls", "[[\"send\",\"sixteen letters..\",4,512,0.5,1]]", "calls[0]");
	refuse_member("calls", "[[\"send\",\"p\\t\",4,512,0.5,1]]", "calls[0]: group: byte 9");
	refuse_member("calls", "[[\"send\",\"pp\",-4,512,0.5,1]]", "calls[0]");
	refuse_member("calls", "[[\"send\",\"pp\",4,512,-0.5,1]]", "calls[0]");
	refuse_member("calls", "[[\"send\",\"pp\",4,512,0.5,1e9]]", "calls[0]");
	refuse_member("calls", "7", "field 'calls'");
}

/* Returns `count` times `text`, with commas, in memory that the caller frees. */
static char *repeat(const char *text, int count)
{
	char *all = calloc((size_t)count, strlen(text) + 2);
	for (int i = 0; i < count; i++) {
		strcat(all, i > 0 ? "," : "");
		strcat(all, text);
	}
	return all;
}

static void refuse_list(const char *name, const char *entry, int count, const char *words)
{
	char *list = repeat(entry, count), *value = malloc(strlen(list) + 3);
	sprintf(value, "[%s]", list);
	refuse_member(name, value, words);
	free(value);
	free(list);
}

static void lists_have_bounds(void **state)
{
	(void)state;
	char thread[16384], *frames = repeat("\"f (g)\"", 65), *ranks = repeat(RANK, 65);
	snprintf(thread, sizeof(thread), THREAD, frames);
	refuse_list("threads", thread, 1, "threads[0]: field 'frames'");
	snprintf(thread, sizeof(thread), THREAD, "");
	refuse_list("threads", thread, 65, "field 'threads'");
	refuse_list("calls", "[\"send\",\"pp\",4,512,0.5,null]", 33, "field 'calls'");
	refuse(ranks, "field 'ranks'");
	free(frames);
	free(ranks);
	char frame[256] = "";
	memset(frame, 'a', 203);
	frame[0] = frame[202] = '"';
	snprintf(thread, sizeof(thread), THREAD, frame);
	refuse_list("threads", thread, 1, "frames[0]: must be a string of at most 200 bytes");
}

static void nodes_and_ranks_are_the_attempts(void **state)
{
	(void)state;
	struct wlbd_attempt_nodes nodes = {0};
	struct wlbd_stacks_body stacks;
	struct wlb_error error = {""};
	json_t *list = json_pack("[s, s]", "n1", "n2"), *of_rank = json_pack("[s, s, s, s]", "n1", "n1", "n2", "n2");
	json_t *body = body_of(RANK);
	assert_int_equal(wlbd_attempt_nodes_set(&nodes, list, 4), 0);
	assert_int_equal(wlbd_attempt_nodes_set_ranks(&nodes, of_rank), 0);
	assert_int_equal(wlbd_stacks_read(body, &stacks, &error), 0);
	assert_int_equal(wlbd_stacks_belong(&stacks, &nodes, &error), 0);
	stacks.node = "n1";
	assert_int_equal(wlbd_stacks_belong(&stacks, &nodes, &error), -1);
	assert_non_null(strstr(error.message, "rank 2: the attempt has no such rank on node n1"));
	stacks.node = "n3";
	assert_int_equal(wlbd_stacks_belong(&stacks, &nodes, &error), -1);
	assert_non_null(strstr(error.message, "node 'n3': is not one of the attempt's"));
	/* Of a rank below a launcher the task is looked at. */
	json_t *rank = json_array_get(json_object_get(body, "ranks"), 0);
	stacks.node = "n2";
	json_object_set_new(rank, "rank", json_integer(17));
	assert_int_equal(wlbd_stacks_belong(&stacks, &nodes, &error), -1);
	json_object_set_new(rank, "task", json_integer(3));
	assert_int_equal(wlbd_stacks_belong(&stacks, &nodes, &error), 0);
	json_object_set_new(rank, "task", json_integer(1));
	assert_int_equal(wlbd_stacks_belong(&stacks, &nodes, &error), -1);
	wlbd_attempt_nodes_free(&nodes);
	json_decref(list);
	json_decref(of_rank);
	json_decref(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_stored_has_known_members_alone),
		cmocka_unit_test(members_have_bounds),
		cmocka_unit_test(lists_have_bounds),
		cmocka_unit_test(nodes_and_ranks_are_the_attempts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
