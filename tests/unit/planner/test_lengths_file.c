#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "planner/lengths_file.h"
#include "planner/lengths_index.h"
#include "planner/lengths_sample.h"

static int read_text(const char *text, size_t bytes, struct wlb_length_list *list, struct wlb_error *error)
{
	FILE *in = fmemopen((void *)text, bytes, "r");
	assert_non_null(in);
	*list = (struct wlb_length_list){0};
	int rc = wlb_length_list_read_text(in, "list", list, error);
	fclose(in);
	return rc;
}

static void reads_a_length_a_line(void **state)
{
	static const char text[] = "5\n0\r\n 131072 \n7";
	static const int64_t lengths[] = {5, 0, 131072, 7};
	struct wlb_length_list list;
	struct wlb_error error;
	(void)state;
	assert_int_equal(read_text(text, strlen(text), &list, &error), 0);
	assert_int_equal(list.count, 4);
	assert_memory_equal(list.tokens, lengths, sizeof(lengths));
	assert_int_equal(list.total_tokens, 131084);
	wlb_length_list_free(&list);
}

static void names_the_line_that_is_wrong(void **state)
{
	static const struct {
		const char *text;
		size_t bytes;
		const char *message;
	} wrong[] = {{"5\n-3\n", 5, "list, line 2: a length of -3 tokens"},
	             {"5\n\n", 3, "list, line 2: ''"},
	             {"5\n6 7\n", 6, "list, line 2: '6 7'"},
	             {"5\0x\n", 4, "list, line 1: '5'"},
	             {"\033[31m7\xff\n", 8, "list, line 1: '?[31m7?'"},
	             {"1099511627777\n", 14, "from 0 to 1099511627776"}};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct wlb_length_list list;
		struct wlb_error error;
		assert_int_equal(read_text(wrong[i].text, wrong[i].bytes, &list, &error), -1);
		assert_non_null(strstr(error.message, wrong[i].message));
		wlb_length_list_free(&list);
	}
}

static void generates_the_stream_of_the_library(void **state)
{
	struct wlb_length_list list = {0};
	struct wlb_lengths lengths;
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_length_list_generate("skewed,count=50,tail=2,seed=9", &list, &error), 0);
	assert_int_equal(list.count, 50);
	wlb_lengths_init(&lengths, 9, 2.0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(list.tokens[i], wlb_lengths_next(&lengths));
	wlb_length_list_free(&list);
	/* More than an integer holds, less than any, and nothing like one. */
	static const char *const refused[] = {"skewed,seed=1e99", "skewed,seed=-1", "skewed,count=nan",
	                                      "skewed,count=2.5", "skewed,tail=5",  "skewed,colour=1"};
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(wlb_length_list_generate(refused[i], &list, &error), -1);
}

/* An index of sequences of 1, 2, 3 ... tokens; each document has as many sequences as `of` says. */
static size_t make_index(unsigned char *data, const int64_t *of, uint64_t documents)
{
	unsigned char *at = data;
	uint64_t sequences = 0, first = 0, ends = documents + 1, version = 1;
	for (uint64_t d = 0; d < documents; d++)
		sequences += (uint64_t)of[d];
	memcpy(at, "MMIDIDX\0", 9);
	memcpy(at + 9, &version, 8);
	at[17] = 8;
	memcpy(at + 18, &sequences, 8);
	memcpy(at + 26, &ends, 8);
	at += 34;
	for (uint32_t s = 1; s <= sequences; s++, at += 4)
		memcpy(at, &s, 4);
	memset(at, 0, 8 * sequences);
	at += 8 * sequences;
	for (uint64_t d = 0; d <= documents; d++, at += 8) {
		memcpy(at, &first, 8);
		first += d < documents ? (uint64_t)of[d] : 0;
	}
	return (size_t)(at - data);
}

static void joins_the_sequences_of_a_document(void **state)
{
	static const int64_t of[] = {1, 3, 0, 2};
	static const int64_t lengths[] = {1, 2 + 3 + 4, 0, 5 + 6};
	unsigned char data[512];
	struct wlb_length_list list = {0};
	struct wlb_error error;
	(void)state;
	size_t bytes = make_index(data, of, 4);
	assert_int_equal(wlb_length_list_parse_index(data, bytes, "x.idx", &list, &error), 0);
	assert_int_equal(list.count, 4);
	assert_memory_equal(list.tokens, lengths, sizeof(lengths));
	wlb_length_list_free(&list);
	for (size_t cut = 0; cut < bytes; cut++) {
		assert_int_equal(wlb_length_list_parse_index(data, cut, "x.idx", &list, &error), -1);
		assert_memory_equal(error.message, "x.idx: ", 7);
		wlb_length_list_free(&list);
	}
}

/* A count may be any number. */
static void refuses_more_sequences_than_the_file_holds(void **state)
{
	static const int64_t of[] = {1, 3};
	static const uint64_t counts[] = {512, UINT64_C(1) << 31, UINT64_MAX / 12, UINT64_MAX};
	unsigned char data[512];
	struct wlb_length_list list = {0};
	struct wlb_error error;
	(void)state;
	size_t bytes = make_index(data, of, 2);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		memcpy(data + 18, &counts[i], sizeof(counts[i]));
		assert_int_equal(wlb_length_list_parse_index(data, bytes, "x.idx", &list, &error), -1);
		assert_non_null(strstr(error.message, "too short"));
		wlb_length_list_free(&list);
	}
}

/* Writes the bytes at `offset` of the file; where `bytes` is 0 the file is made that long. */
static void write_at(int fd, const void *data, size_t bytes, off_t offset)
{
	if (bytes == 0)
		assert_int_equal(ftruncate(fd, offset), 0);
	else
		assert_int_equal(pwrite(fd, data, bytes, offset), bytes);
}

static int sample(const char *path, struct wlb_length_list *list, struct wlb_error *error)
{
	*list = (struct wlb_length_list){0};
	return wlb_length_list_sample_index(path, list, error);
}

static void samples_all_of_a_small_index(void **state)
{
	enum { DOCUMENTS = 900 };
	int64_t of[DOCUMENTS], sum = 0, in_place = 0;
	unsigned char *data = calloc(1, 1 << 16), seen[2 * DOCUMENTS + 2] = {0};
	char path[] = "/tmp/wlb_lengths_XXXXXX";
	int fd = mkstemp(path);
	struct wlb_length_list list;
	struct wlb_error error;
	(void)state;
	for (int d = 0; d < DOCUMENTS; d++)
		of[d] = 1;
	size_t bytes = make_index(data, of, DOCUMENTS);
	write_at(fd, data, bytes, 0);
	assert_int_equal(sample(path, &list, &error), 0);
	assert_int_equal(list.count, DOCUMENTS);
	for (int d = 0; d < DOCUMENTS; d++) {
		assert_in_range(list.tokens[d], 1, DOCUMENTS);
		assert_int_equal(seen[list.tokens[d]]++, 0);
		in_place += list.tokens[d] == d + 1;
		sum += list.tokens[d];
	}
	assert_int_equal(list.total_tokens, sum);
	assert_true(in_place < DOCUMENTS / 10);
	wlb_length_list_free(&list);
	for (size_t cut = 0; cut < bytes; cut += 97) {
		write_at(fd, NULL, 0, (off_t)cut);
		assert_int_equal(sample(path, &list, &error), -1);
		assert_non_null(strstr(error.message, path));
		wlb_length_list_free(&list);
	}
	unlink(path);
	close(fd);
	free(data);
	assert_int_equal(sample(path, &list, &error), -1);
	assert_non_null(strstr(error.message, "cannot be opened"));
}

/* `path` with ".idx" is an index of a billion documents. */
static void refuses_to_read_all(const char *path)
{
	char index[64];
	struct wlb_length_list list = {0};
	struct wlb_error error;
	snprintf(index, sizeof(index), "%s.idx", path);
	assert_int_equal(rename(path, index), 0);
	assert_int_equal(wlb_length_list_read(path, &list, &error), -1);
	assert_non_null(strstr(error.message, "1000000000 documents: at most 100000000 are read"));
	assert_null(list.tokens);
	assert_int_equal(rename(index, path), 0);
}

/* A file with holes: all documents are without a sequence but those of its last block, 256 with one of 7 tokens, and
 * one in the middle with more sequences than are read. */
static void samples_an_index_of_a_billion_documents(void **state)
{
	const uint64_t documents = 1000000000, ends = documents + 1, version = 1;
	const off_t bounds = 34 + 12 * (off_t)documents;
	char path[] = "/tmp/wlb_lengths_XXXXXX";
	int fd = mkstemp(path);
	struct wlb_length_list list;
	struct wlb_error error;
	(void)state;
	write_at(fd, "MMIDIDX\0", 9, 0);
	write_at(fd, &version, 8, 9);
	write_at(fd, &documents, 8, 18);
	write_at(fd, &ends, 8, 26);
	write_at(fd, NULL, 0, bounds + 8 * (off_t)ends);
	for (uint64_t s = 0; s < 256; s++) {
		const int32_t seven = 7;
		write_at(fd, &seven, 4, 34 + 4 * (off_t)s);
		write_at(fd, &s, 8, bounds + 8 * (off_t)(documents - 256 + s));
	}
	const uint64_t last = 256;
	write_at(fd, &last, 8, bounds + 8 * (off_t)documents);
	assert_int_equal(sample(path, &list, &error), 0);
	assert_int_equal(list.count, WLB_SAMPLE_DOCUMENTS);
	assert_int_equal(list.total_tokens, 7 * 256);
	wlb_length_list_free(&list);
	refuses_to_read_all(path);
	write_at(fd, &documents, 8, bounds + 8);  /* the first document has all sequences, */
	write_at(fd, &documents, 8, bounds + 16); /* the second none; the third goes back */
	assert_int_equal(sample(path, &list, &error), -1);
	assert_non_null(strstr(error.message, "document 2 has the sequences from 1000000000 to 0"));
	wlb_length_list_free(&list);
	for (int d = 3; d <= 256; d++)
		write_at(fd, &documents, 8, bounds + 8 * d);
	assert_int_equal(sample(path, &list, &error), 0);
	assert_int_equal(list.count, WLB_SAMPLE_DOCUMENTS - 255);
	assert_int_equal(list.total_tokens, 2 * 7 * 256);
	wlb_length_list_free(&list);
	unlink(path);
	close(fd);
}

static void starts_over_where_it_is_asked_to(void **state)
{
	int64_t tokens[] = {4, 9}, got;
	const struct wlb_length_list list = {.tokens = tokens, .count = 2};
	struct wlb_length_stream once = {.list = &list}, again = {.list = &list, .repeat = true};
	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(wlb_length_stream_next(&once, &got), i < 2);
		assert_true(wlb_length_stream_next(&again, &got));
		assert_int_equal(got, tokens[i % 2]);
	}
}

/* Neither memory nor a part of the line is taken for a line without an end. */
static void lines_have_a_bound(void **state)
{
	static char zeros[1 << 16];
	char text[160];
	struct wlb_length_list list;
	struct wlb_error error;
	(void)state;
	assert_int_equal(read_text(zeros, sizeof(zeros), &list, &error), -1);
	assert_non_null(strstr(error.message, "list, line 1: the line has more than 63 bytes"));
	snprintf(text, sizeof(text), "%63d\n%62d\r\n", 7, 8);
	assert_int_equal(read_text(text, strlen(text), &list, &error), 0);
	assert_int_equal(list.total_tokens, 15);
	wlb_length_list_free(&list);
	snprintf(text, sizeof(text), "7\n%64d\n", 8);
	assert_int_equal(read_text(text, strlen(text), &list, &error), -1);
	assert_non_null(strstr(error.message, "list, line 2: the line has more than 63 bytes"));
	wlb_length_list_free(&list);
}

static void an_error_of_reading_is_no_end(void **state)
{
	struct wlb_length_list list = {0};
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_length_list_read("/", &list, &error), -1);
	assert_non_null(strstr(error.message, "--lengths: /, line 1: cannot be read: Is a directory"));
}

static void does_not_wait_for_the_writer_of_an_index(void **state)
{
	char dir[] = "/tmp/wlb_lengths_XXXXXX", path[64];
	struct wlb_length_list list = {0};
	struct wlb_error error;
	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x.idx", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(10); /* ends the test where it waits */
	assert_int_equal(sample(path, &list, &error), -1);
	alarm(0);
	assert_non_null(strstr(error.message, "x.idx: is not a regular file"));
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads_a_length_a_line),
	                                   cmocka_unit_test(names_the_line_that_is_wrong),
	                                   cmocka_unit_test(generates_the_stream_of_the_library),
	                                   cmocka_unit_test(joins_the_sequences_of_a_document),
	                                   cmocka_unit_test(refuses_more_sequences_than_the_file_holds),
	                                   cmocka_unit_test(samples_all_of_a_small_index),
	                                   cmocka_unit_test(samples_an_index_of_a_billion_documents),
	                                   cmocka_unit_test(lines_have_a_bound),
	                                   cmocka_unit_test(an_error_of_reading_is_no_end),
	                                   cmocka_unit_test(does_not_wait_for_the_writer_of_an_index),
	                                   cmocka_unit_test(starts_over_where_it_is_asked_to)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
