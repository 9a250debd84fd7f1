#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/digest.h"

/* printf 'GET\n/v1/runs\n' | sha256sum, and the same with a body. */
static void matches_sha256sum(void **state)
{
	char digest[WLB_DIGEST_SIZE];
	(void)state;
	wlb_digest_request("GET", "/v1/runs", NULL, 0, digest);
	assert_string_equal(digest, "5271e6129f35229b80c4eea3f8d6449f41936b91e77b2389b21de4ceb941393a");
	wlb_digest_request("POST", "/v1/runs", "{\"a\":1}", 7, digest);
	assert_string_equal(digest, "c063652553107df1d1659d55501035e7499ccd6604af342384e53479c27de56e");
}

static void depends_on_every_part(void **state)
{
	char one[WLB_DIGEST_SIZE], other[WLB_DIGEST_SIZE];
	(void)state;
	wlb_digest_request("POST", "/a", "b", 1, one);
	wlb_digest_request("PUT", "/a", "b", 1, other);
	assert_string_not_equal(one, other);
	wlb_digest_request("POST", "/a?", "b", 1, other);
	assert_string_not_equal(one, other);
	wlb_digest_request("POST", "/a", "c", 1, other);
	assert_string_not_equal(one, other);
	wlb_digest_request("POST", "/a", "b", 0, other);
	assert_string_not_equal(one, other);
}

/* h() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
 * printf 'reply\n%s\n200\nPOST\n/v1/runs\n%s' "$(h MUNGE:x:)" "$(h '{"a":1}')" | sha256sum */
static void a_reply_matches_sha256sum(void **state)
{
	char digest[WLB_DIGEST_SIZE];
	(void)state;
	wlb_digest_reply("MUNGE:x:", 200, "POST", "/v1/runs", "{\"a\":1}", 7, digest);
	assert_string_equal(digest, "cb1a67e647ba9f7f510a04abd813f222feee81d0d530aec63070435cf67df8b6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(matches_sha256sum), cmocka_unit_test(depends_on_every_part),
	                                   cmocka_unit_test(a_reply_matches_sha256sum)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
