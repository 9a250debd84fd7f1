#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/client/http.h"

enum { LIMIT = 1000 };

static void reads_a_head(void **state)
{
	struct wlb_http_head head;
	struct wlb_error error;
	(void)state;
	assert_int_equal(
		wlb_http_head_parse("HTTP/1.1 409 Conflict\r\nDate: x\r\ncontent-LENGTH: \t12 ", LIMIT, &head, &error),
		0);
	assert_int_equal(head.status, 409);
	assert_int_equal(head.body_bytes, 12);
	assert_true(head.keep_alive);
	assert_false(head.until_close);
}

static void finds_the_proof(void **state)
{
	struct wlb_http_head head;
	(void)state;
	assert_int_equal(
		wlb_http_head_parse("HTTP/1.1 200 OK\r\nwlb-proof: munge MUNGE:AwQ=: \r\nA: b", LIMIT, &head, NULL), 0);
	assert_string_equal(head.proof, "MUNGE:AwQ=:");
	assert_int_equal(wlb_http_head_parse("HTTP/1.1 200 OK\r\nWLB-Proof: other", LIMIT, &head, NULL), 0);
	assert_string_equal(head.proof, "");
}

static void knows_when_the_connection_ends(void **state)
{
	struct wlb_http_head head;
	(void)state;
	assert_int_equal(wlb_http_head_parse("HTTP/1.1 200 OK\r\nConnection: Close", LIMIT, &head, NULL), 0);
	assert_false(head.keep_alive);
	assert_true(head.until_close);
	assert_int_equal(wlb_http_head_parse("HTTP/1.0 200 OK\r\nContent-Length: 0", LIMIT, &head, NULL), 0);
	assert_false(head.keep_alive);
	assert_int_equal(wlb_http_head_parse("HTTP/1.1 204 No Content", LIMIT, &head, NULL), 0);
	assert_false(head.until_close);
}

static void refuses_what_is_not_http(void **state)
{
	static const char *const bad[] = {
		"",
		"hello",
		"HTTP/2 200",
		"HTTP/1.1 20",
		"HTTP/1.1 abc",
		"HTTP/1.1 200 OK\r\nno colon",
		"HTTP/1.1 200 OK\r\nContent-Length: -1",
		"HTTP/1.1 200 OK\r\nContent-Length: 1x",
		"HTTP/1.1 200 OK\r\nContent-Length: 1001",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked",
	};
	struct wlb_http_head head;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(wlb_http_head_parse(bad[i], LIMIT, &head, &error), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_proof),
		cmocka_unit_test(reads_a_head),
		cmocka_unit_test(knows_when_the_connection_ends),
		cmocka_unit_test(refuses_what_is_not_http),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
