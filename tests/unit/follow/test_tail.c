/* What is appended is read once, also by a reader that begins again at the place it kept; another file is read anew. */
#include "follow/tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "follow/crc32c.h"

static char dir[] = "/tmp/wlb-tail-XXXXXX";
static char path[64];
static struct wlb_tail_place place;
static struct wlb_error error;

static void put(const char *mode, const char *text)
{
	FILE *file = fopen(path, mode);
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void assert_reads(enum wlb_tail_result expected, const char *text)
{
	char bytes[64];
	size_t count;
	assert_int_equal(wlb_tail_read(path, &place, bytes, sizeof(bytes), &count, &error), expected);
	assert_int_equal(count, strlen(text));
	assert_memory_equal(bytes, text, count);
}

static int setup(void **state)
{
	(void)state;
	unlink(path);
	place = (struct wlb_tail_place){0};
	return 0;
}

static void appended_bytes_are_read_once(void **state)
{
	(void)state;
	assert_reads(WLB_TAIL_NONE, "");
	put("a", "one\n");
	assert_reads(WLB_TAIL_BYTES, "one\n");
	assert_reads(WLB_TAIL_NONE, "");
	put("a", "two\nthr");
	struct wlb_tail_place kept = place;
	assert_reads(WLB_TAIL_BYTES, "two\nthr");
	place.offset = 8; /* the last whole line ends there */
	assert_reads(WLB_TAIL_BYTES, "thr");
	place = kept;
	assert_reads(WLB_TAIL_BYTES, "two\nthr");
	assert_int_equal(place.generation, 0);
}

static void a_file_that_is_cut_is_another_one(void **state)
{
	(void)state;
	put("w", "one\ntwo\n");
	assert_reads(WLB_TAIL_BYTES, "one\ntwo\n");
	put("w", "one\n");
	assert_reads(WLB_TAIL_ANOTHER, "");
	assert_int_equal(place.generation, 1);
	assert_reads(WLB_TAIL_BYTES, "one\n");
}

static void a_file_made_anew_is_another_one_however_long(void **state)
{
	(void)state;
	put("w", "one\n");
	assert_reads(WLB_TAIL_BYTES, "one\n");
	unlink(path);
	assert_reads(WLB_TAIL_NONE, "");
	put("w", "two\nthree\n");
	assert_reads(WLB_TAIL_ANOTHER, "");
	assert_reads(WLB_TAIL_BYTES, "two\nthree\n");
}

/* The place is as good after a first piece that is shorter than the bytes by which the file is known. */
static void the_head_grows_with_the_file(void **state)
{
	char text[600], bytes[64];
	size_t count;
	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	put("w", text);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wlb_tail_read(path, &place, bytes, 50, &count, &error), WLB_TAIL_BYTES);
	assert_int_equal(place.head_bytes, 150);
	place.offset = 120;
	while (wlb_tail_read(path, &place, bytes, 50, &count, &error) == WLB_TAIL_BYTES)
		;
	assert_int_equal(place.head_bytes, WLB_TAIL_HEAD_BYTES);
	assert_int_equal(place.head_crc, wlb_crc32c(0, text, WLB_TAIL_HEAD_BYTES));
	assert_int_equal(place.offset, sizeof(text) - 1);
	text[200] = 'y';
	put("w", text);
	assert_reads(WLB_TAIL_ANOTHER, "");
}

static void what_is_no_file_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_reads(WLB_TAIL_FAILED, "");
	assert_non_null(strstr(error.message, path));
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_reads(WLB_TAIL_FAILED, "");
}

static void the_crc_is_castagnolis(void **state)
{
	unsigned char bytes[32] = {0};
	(void)state;
	assert_int_equal(wlb_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(wlb_crc32c(wlb_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
	assert_int_equal(wlb_crc32c(0, bytes, 32), 0x8a9136aa); /* RFC 3720, B.4 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(appended_bytes_are_read_once, setup),
		cmocka_unit_test_setup(a_file_that_is_cut_is_another_one, setup),
		cmocka_unit_test_setup(a_file_made_anew_is_another_one_however_long, setup),
		cmocka_unit_test_setup(the_head_grows_with_the_file, setup),
		cmocka_unit_test_setup(what_is_no_file_is_refused, setup),
		cmocka_unit_test(the_crc_is_castagnolis),
	};
	if (mkdtemp(dir) == NULL)
		return 1;
	snprintf(path, sizeof(path), "%s/file", dir);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(dir);
	return failed;
}
