/* Which requests the server of `wlb open` answers: those with its token, of loopback, and of no other site. */
#include "coordinator/wlb/open/request_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static enum wlb_page_answer ask(const char *method, const char *path, const char *host)
{
	const struct wlb_page_request request = {.method = method, .path = path, .host = host};
	return wlb_page_answer(&request, TOKEN);
}

static enum wlb_page_answer ask_from(const char *origin, const char *fetch_site)
{
	const struct wlb_page_request request = {.method = "GET",
	                                         .path = "/" TOKEN "/data",
	                                         .host = "localhost:8000",
	                                         .origin = origin,
	                                         .fetch_site = fetch_site};
	return wlb_page_answer(&request, TOKEN);
}

static void page_and_data_are_behind_the_token(void **state)
{
	(void)state;
	assert_int_equal(ask("GET", "/" TOKEN "/", "127.0.0.1:8000"), WLB_ANSWER_PAGE);
	assert_int_equal(ask("GET", "/" TOKEN "/data", "127.0.0.1:8000"), WLB_ANSWER_DATA);
	static const char *const nothing[] = {
		"/" TOKEN "/dat",     "/" TOKEN "/data/",         "/" TOKEN "//",
		"/" TOKEN "/../data", "/" TOKEN "/../etc/passwd", "/" TOKEN "/" TOKEN "/"};
	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
		assert_int_equal(ask("GET", nothing[i], "127.0.0.1:8000"), WLB_ANSWER_NOTHING);
}

static void another_token_is_refused(void **state)
{
	char path[] = "/" TOKEN "/data";
	(void)state;
	static const char *const wrong[] = {NULL,
	                                    "",
	                                    "/",
	                                    "/data",
	                                    "/index.html",
	                                    "/favicon.ico",
	                                    "/" TOKEN,
	                                    TOKEN "/",
	                                    "//" TOKEN "/",
	                                    "/" TOKEN "x",
	                                    "/../" TOKEN "/"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ask("GET", wrong[i], "127.0.0.1:8000"), WLB_ANSWER_FORBIDDEN);
	for (size_t i = 0; i <= strlen(TOKEN); i++) {
		path[i] ^= 1;
		assert_int_equal(ask("GET", path, "127.0.0.1:8000"), WLB_ANSWER_FORBIDDEN);
		path[i] ^= 1;
	}
	assert_int_equal(ask("GET", path, "127.0.0.1:8000"), WLB_ANSWER_DATA);
	assert_int_equal(ask("POST", "/", "127.0.0.1:8000"), WLB_ANSWER_FORBIDDEN);
}

static void only_get_is_answered(void **state)
{
	static const char *const methods[] = {NULL,     "",        "HEAD",    "POST", "PUT",
	                                      "DELETE", "OPTIONS", "CONNECT", "get",  "GETS"};
	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		assert_int_equal(ask(methods[i], "/" TOKEN "/", "127.0.0.1:8000"), WLB_ANSWER_WRONG_METHOD);
}

static void the_host_must_be_loopback(void **state)
{
	static const char *const right[] = {"127.0.0.1", "127.0.0.1:1", "localhost", "localhost:65535", "[::1]:8000"};
	static const char *const wrong[] = {NULL,
	                                    "",
	                                    "example.org",
	                                    "example.org:8000",
	                                    "127.0.0.1.example.org",
	                                    "127.0.0.1:8000.example.org",
	                                    "localhost.example.org:8000",
	                                    "localhost:",
	                                    "localhost:123456",
	                                    "localhost:80a",
	                                    "127.0.0.2:8000",
	                                    "user@localhost",
	                                    "LOCALHOST:8000 "};
	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		assert_int_equal(ask("GET", "/" TOKEN "/", right[i]), WLB_ANSWER_PAGE);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ask("GET", "/" TOKEN "/", wrong[i]), WLB_ANSWER_FORBIDDEN);
}

static void other_sites_are_refused(void **state)
{
	(void)state;
	assert_int_equal(ask_from(NULL, NULL), WLB_ANSWER_DATA);
	assert_int_equal(ask_from("http://localhost:8000", "same-origin"), WLB_ANSWER_DATA);
	assert_int_equal(ask_from(NULL, "none"), WLB_ANSWER_DATA);
	static const char *const origins[] = {"null",
	                                      "",
	                                      "http://example.org",
	                                      "http://localhost:8001",
	                                      "https://localhost:8000",
	                                      "http://localhost:8000.example.org"};
	for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++)
		assert_int_equal(ask_from(origins[i], NULL), WLB_ANSWER_FORBIDDEN);
	static const char *const sites[] = {"cross-site", "same-site", ""};
	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++)
		assert_int_equal(ask_from(NULL, sites[i]), WLB_ANSWER_FORBIDDEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_and_data_are_behind_the_token),
		cmocka_unit_test(another_token_is_refused),
		cmocka_unit_test(only_get_is_answered),
		cmocka_unit_test(the_host_must_be_loopback),
		cmocka_unit_test(other_sites_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
