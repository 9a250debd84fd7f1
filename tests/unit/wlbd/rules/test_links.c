/* Links between nodes that a launcher has checked: the body that reports them, and the node that is excluded. */
#include "coordinator/wlbd/api/attempts/links_body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/rules/links.h"

static void test_the_node_with_the_most_broken_links(void **state)
{
	const struct wlbd_broken_link cut[] = {{1, 0}, {1, 2}, {1, 3}, {0, 1}, {2, 1}, {3, 1}};
	const struct wlbd_broken_link silent[] = {{0, 1}, {2, 1}, {3, 1}}; /* node 1 could not say anything */
	const struct wlbd_broken_link pair[] = {{1, 2}, {2, 1}};
	const struct wlbd_broken_link first[] = {{0, 1}, {0, 2}, {0, 3}, {1, 0}, {2, 0}, {3, 0}};
	(void)state;
	assert_int_equal(wlbd_links_worst(cut, 6, 4), 1);
	assert_int_equal(wlbd_links_worst(silent, 3, 4), 1);
	assert_int_equal(wlbd_links_worst(pair, 2, 4), 2);
	assert_int_equal(wlbd_links_worst(first, 6, 4), 0);
	assert_int_equal(wlbd_links_worst(NULL, 0, 4), -1);
}

/* Reads the object "links" of a job on n1 to n4; returns the body, which the caller decrefs. */
static json_t *read_links(const char *text, struct wlbd_links_body *out, int expected, struct wlb_error *error)
{
	char whole[512];
	snprintf(whole, sizeof(whole), "{\"nodes\":[\"n1\",\"n2\",\"n3\",\"n4\"]%s%s}", *text ? ",\"links\":" : "",
	         text);
	json_t *body = json_loads(whole, 0, NULL);
	assert_non_null(body);
	assert_int_equal(wlbd_links_body_read(body, json_object_get(body, "nodes"), out, error), expected);
	return body;
}

static void test_the_body(void **state)
{
	struct wlbd_links_body links;
	struct wlb_error error = {0};
	char why[WLBD_LINKS_WHY_SIZE];
	(void)state;
	json_decref(read_links("", &links, 0, &error));
	assert_false(links.can_check);
	json_decref(read_links("{\"checked\":false}", &links, 0, &error));
	assert_true(links.can_check && !links.checked);
	json_t *body = read_links("{\"checked\":true,\"unreached\":{\"n2\":[\"n1\",\"n3\",\"n4\"],\"n3\":[\"n2\"]}}",
	                          &links, 0, &error);
	assert_true(links.checked);
	assert_string_equal(wlbd_links_body_worst(&links, json_object_get(body, "nodes"), why), "n2");
	assert_string_equal(why, "n2 does not reach n1, n3 and n4");
	json_decref(body);
	body = read_links("{\"checked\":true,\"unreached\":{\"n4\":[\"n3\"],\"n3\":[\"n4\"]}}", &links, 0, &error);
	assert_string_equal(wlbd_links_body_worst(&links, json_object_get(body, "nodes"), why), "n4");
	assert_string_equal(why, "n4 does not reach n3");
	json_decref(body);
	/* n2 itself could not say anything. */
	body = read_links("{\"checked\":true,\"unreached\":{\"n1\":[\"n2\"],\"n3\":[\"n2\"]}}", &links, 0, &error);
	assert_string_equal(wlbd_links_body_worst(&links, json_object_get(body, "nodes"), why), "n2");
	assert_string_equal(why, "other nodes do not reach n2");
	json_decref(body);
	/* Of the others, which were not in the attempt, nothing follows. */
	json_t *of_attempt = json_pack("[s, s, s]", "n1", "n2", "n3");
	body = read_links("{\"checked\":true,\"unreached\":{\"n4\":[\"n1\",\"n2\",\"n3\"],\"n1\":[\"n4\",\"n2\"]}}",
	                  &links, 0, &error);
	assert_string_equal(wlbd_links_body_worst(&links, json_object_get(body, "nodes"), why), "n4");
	assert_string_equal(wlbd_links_body_worst(&links, of_attempt, why), "n2");
	assert_string_equal(why, "other nodes do not reach n2");
	json_decref(body);
	body = read_links("{\"checked\":true,\"unreached\":{\"n4\":[\"n1\"],\"n3\":[\"n4\"]}}", &links, 0, &error);
	assert_null(wlbd_links_body_worst(&links, of_attempt, why));
	json_decref(body);
	json_decref(of_attempt);
	body = read_links("{\"checked\":true,\"unreached\":{}}", &links, 0, &error);
	assert_null(wlbd_links_body_worst(&links, json_object_get(body, "nodes"), why));
	json_decref(body);
}

static void test_refusals_name_the_field(void **state)
{
	static const char *const cases[][2] = {
		{"[]", "links"},
		{"{}", "checked"},
		{"{\"checked\":1}", "checked"},
		{"{\"checked\":true,\"unreached\":[]}", "unreached"},
		{"{\"checked\":true,\"unreached\":{\"n5\":[\"n1\"]}}", "'n5': must be one of nodes"},
		{"{\"checked\":true,\"unreached\":{\"n1\":[\"n5\"]}}", "'n5': must be one of nodes"},
		{"{\"checked\":true,\"unreached\":{\"n1\":[1]}}", "n1"},
		{"{\"checked\":true,\"unreached\":{\"n1\":\"n2\"}}", "n1"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlbd_links_body links;
		struct wlb_error error = {0};
		json_decref(read_links(cases[i][0], &links, -1, &error));
		if (strstr(error.message, cases[i][1]) == NULL)
			fail_msg("'%s' is not in: %s", cases[i][1], error.message);
	}
}

static void test_more_names_than_a_list_may_have(void **state)
{
	struct wlbd_links_body links;
	struct wlb_error error = {0};
	(void)state;
	json_t *list = json_array(), *nodes = json_pack("[s]", "n1");
	for (int i = 0; i <= WLBD_UNREACHED_MAX; i++)
		json_array_append_new(list, json_string("n1"));
	json_t *body = json_pack("{s:{s:b, s:{s:o}}}", "links", "checked", 1, "unreached", "n1", list);
	assert_int_equal(wlbd_links_body_read(body, nodes, &links, &error), -1);
	assert_non_null(strstr(error.message, "4096"));
	json_decref(body);
	json_decref(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_node_with_the_most_broken_links),
		cmocka_unit_test(test_the_body),
		cmocka_unit_test(test_refusals_name_the_field),
		cmocka_unit_test(test_more_names_than_a_list_may_have),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
