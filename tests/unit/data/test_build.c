/* `wlb data build` and `info`: files in, a dataset out, whole or not at all. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/unit/data/fixture.h"
#include "worker/data/build.h"
#include "worker/data/dataset.h"
#include "worker/data/gunzip.h"
#include "worker/data/index_writer.h"
#include "worker/data/info.h"
#include "worker/data/input.h"

static volatile sig_atomic_t interrupted; /* set during the read that makes reads_left 0 */
static int reads_left;

int64_t __real_wlb_gunzip_read(struct wlb_gunzip *g, char *to, int64_t bytes, struct wlb_error *error);
int64_t __wrap_wlb_gunzip_read(struct wlb_gunzip *g, char *to, int64_t bytes, struct wlb_error *error);

int64_t __wrap_wlb_gunzip_read(struct wlb_gunzip *g, char *to, int64_t bytes, struct wlb_error *error)
{
	interrupted = --reads_left == 0 ? 1 : interrupted;
	return __real_wlb_gunzip_read(g, to, bytes, error);
}

static const char *refused = ""; /* the file of this name cannot be opened */

int __real_wlb_input_open(const char *path, int64_t *bytes, struct wlb_error *error);
int __wrap_wlb_input_open(const char *path, int64_t *bytes, struct wlb_error *error);

int __wrap_wlb_input_open(const char *path, int64_t *bytes, struct wlb_error *error)
{
	if (strcmp(basename(path), refused) != 0)
		return __real_wlb_input_open(path, bytes, error);
	wlb_fail(error, "%s: cannot be opened: %s", path, strerror(EIO));
	return WLB_UNREADABLE;
}

enum { LARGEST_DOCUMENT_BYTES = 400000 };

static int strict; /* the option of the next builds */

/* Builds FOLDER/out from FOLDER/in. */
static int build(void **state, struct wlb_build_result *result, int *bad_input, struct wlb_error *error)
{
	char *inputs[] = {strdup(fixture_path(state, "in")), NULL};
	const struct wlb_build_options options = {
		.inputs = inputs,
		.output_prefix = fixture_path(state, "out"),
		.source = {"text", LARGEST_DOCUMENT_BYTES, {NULL, NULL}, 0, 0, &interrupted},
		.min_bytes = 1,
		.strict = strict};
	int rc = wlb_build(&options, result, bad_input, error);
	free(inputs[0]);
	return rc;
}

static void build_good(void **state, struct wlb_build_result *result)
{
	struct wlb_error error;
	int bad_input;
	if (build(state, result, &bad_input, &error) < 0)
		fail_msg("%s", error.message);
}

static int setup(void **state)
{
	return fixture_setup(state) == 0 && mkdir(fixture_path(state, "in"), 0777) == 0 ? 0 : -1;
}

/* Document `index` of FOLDER/out is this text and the end of the document. */
static void expect_document(void **state, int index, const char *text, size_t length)
{
	struct wlb_error error;
	struct wlb_dataset *d;
	assert_int_equal(wlb_dataset_open(fixture_path(state, "out"), &d, &error), 0);
	int32_t tokens[64];
	assert_int_equal(wlb_dataset_length(d, index), length + 1);
	assert_int_equal(wlb_dataset_read(d, index, 0, (int64_t)length + 1, tokens, &error), 0);
	for (size_t i = 0; i < length; i++)
		assert_int_equal(tokens[i], (unsigned char)text[i]);
	assert_int_equal(tokens[length], WLB_BYTES_END_OF_DOCUMENT);
	wlb_dataset_close(d);
}

static void write_gzip(void **state, const char *name, const char *text)
{
	gzFile file = gzopen(fixture_path(state, name), "w");
	assert_non_null(file);
	assert_int_equal(gzputs(file, text), strlen(text));
	assert_int_equal(gzclose(file), Z_OK);
}

static void test_files_in_order_of_names(void **state)
{
	struct wlb_build_result r;
	mkdir(fixture_path(state, "in/sub"), 0777);
	fixture_write_text(state, "in/b", "second\xff");
	fixture_write_text(state, "in/a", "first");
	write_gzip(state, "in/c.gz", "third");
	fixture_write_text(state, "in/sub/d", "fourth");
	fixture_write(state, "in/image", "\x89PNG\0", 5);
	fixture_write_text(state, "in/empty", "");
	build_good(state, &r);
	assert_int_equal(r.documents, 4);
	assert_int_equal(r.tokens, 5 + 7 + 5 + 6 + 4);
	assert_int_equal(r.files, 6);
	assert_int_equal(r.omitted.not_text, 1);
	assert_says(r.first.not_text.message, "in/image: has NUL bytes: text must have none");
	assert_int_equal(r.omitted.too_short, 1);
	assert_int_equal(r.omitted.unreadable, 0);
	expect_document(state, 0, "first", 5);
	expect_document(state, 1, "second\xff", 7);
	expect_document(state, 2, "third", 5);
	expect_document(state, 3, "fourth", 6);
}

static void test_links_count_once(void **state)
{
	struct wlb_build_result r;
	char target[4096];
	fixture_write_text(state, "in/a", "text");
	snprintf(target, sizeof(target), "%s", fixture_path(state, "in/a"));
	assert_int_equal(link(target, fixture_path(state, "in/hard")), 0);
	assert_int_equal(symlink("a", fixture_path(state, "in/soft")), 0);
	assert_int_equal(symlink(".", fixture_path(state, "in/loop")), 0);
	assert_int_equal(symlink("nowhere", fixture_path(state, "in/dangling")), 0);
	build_good(state, &r);
	assert_int_equal(r.documents, 1);
	assert_int_equal(r.links, 3);
	assert_int_equal(r.omitted.unreadable, 0);
}

static void test_jsonl(void **state)
{
	struct wlb_build_result r;
	fixture_write_text(state, "in/a.jsonl",
	                   "{\"text\":\"one\"}\n\n{\"id\":7,\"text\":\"t\\u00e4\\u0000o\"}\r\n{\"text\":\"\"}\n"
	                   "{\"text\":\"last\"}");
	write_gzip(state, "in/b.jsonl.gz", "{\"text\":\"packed\"}\n");
	build_good(state, &r);
	assert_int_equal(r.documents, 4);
	assert_int_equal(r.omitted.too_short, 1);
	expect_document(state, 0, "one", 3);
	expect_document(state, 1, "t\xc3\xa4\0o", 5);
	expect_document(state, 2, "last", 4);
	expect_document(state, 3, "packed", 6);
}

/* Lines that Python's json module, pyarrow or an editor write; only the text matters. */
static void test_jsonl_of_other_programs(void **state)
{
	struct wlb_build_result r;
	fixture_write_text(state, "in/a.jsonl",
	                   "\xef\xbb\xbf{\"id\":18446744073709551615,\"text\":\"first\"}\r\n"
	                   "{\"meta\":{\"h\":-9223372036854775809},\"text\":\"b\"}\n"
	                   "{\"a\":NaN,\"b\":[Infinity,-Infinity],\"c\":1e999,\"text\":\"NaN, Infinity, 1e999\"}\n"
	                   "{\"NaN\":\"\\\"\",\"text\":\"\\ud83d \\ud83d\\ude00\\ude00\\\\ud83d\"}\n");
	fixture_write_text(state, "in/b.jsonl", "\xef\xbb\xbf\r\n{\"text\":\"after an empty line\"}");
	build_good(state, &r);
	assert_int_equal(r.documents, 5);
	expect_document(state, 0, "first", 5);
	expect_document(state, 1, "b", 1);
	expect_document(state, 2, "NaN, Infinity, 1e999", 20);
	const char *replaced = "\xef\xbf\xbd \xf0\x9f\x98\x80\xef\xbf\xbd\\ud83d";
	expect_document(state, 3, replaced, strlen(replaced));
	expect_document(state, 4, "after an empty line", 19);
}

static void test_long_lines_and_files(void **state)
{
	enum { LENGTH = 300000 };
	struct wlb_build_result r;
	char *text = malloc(LENGTH + 32);
	int at = sprintf(text, "{\"text\":\"");
	memset(text + at, 'x', LENGTH);
	strcpy(text + at + LENGTH, "\"}\n");
	fixture_write_text(state, "in/a.jsonl", text);
	text[0] = '(';
	fixture_write_text(state, "in/b", text);
	build_good(state, &r);
	assert_int_equal(r.documents, 2);
	assert_int_equal(r.tokens, (LENGTH + 1) + ((int64_t)strlen(text) + 1));
	free(text);
}

static void expect_bad_input(void **state, const char *reason)
{
	struct wlb_build_result r;
	struct wlb_error error;
	int bad_input = 0;
	assert_int_equal(build(state, &r, &bad_input, &error), -1);
	assert_true(bad_input);
	assert_says(error.message, reason);
	assert_int_equal(fixture_entries(*state), 1); /* "in" */
}

static void test_malformed_jsonl(void **state)
{
	fixture_write_text(state, "in/a.jsonl", "{\"text\":\"one\"}\n{\"text\":3}\n");
	expect_bad_input(state, "a.jsonl: line 2: field 'text' is not a string");
	fixture_write_text(state, "in/a.jsonl", "{\"text\":\"one\"}\n\n{\"words\":3}\n");
	expect_bad_input(state, "a.jsonl: line 3: field 'text' is missing");
	fixture_write_text(state, "in/a.jsonl", "{\"text\":\"one\"\n");
	expect_bad_input(state, "a.jsonl: line 1: ");
	fixture_write_text(state, "in/a.jsonl", "[\"text\"]\n");
	expect_bad_input(state, "a.jsonl: line 1: an array: each line must be a JSON object in UTF-8");
	fixture_write_text(state, "in/a.jsonl", "{\"text\":NaN}\n");
	expect_bad_input(state, "a.jsonl: line 1: field 'text' is not a string");
	fixture_write_text(state, "in/a.jsonl", "{\"a\":NaNs,\"text\":\"one\"}\n");
	expect_bad_input(state, "a.jsonl: line 1: ");
	fixture_write_text(state, "in/a.jsonl", "{\"text\":\"\\ud83\"}\n");
	expect_bad_input(state, "a.jsonl: line 1: ");
	fixture_write(state, "in/a.jsonl", "{\"text\":\"o\0e\"}\n", 15);
	expect_bad_input(state, "a.jsonl: line 1: ");
	/* As a writer leaves it whose host crashed: the line is not to be lost. */
	fixture_write(state, "in/a.jsonl", "{\"text\":\"one\"}\n\0\0{\"text\":\"two\"}\n", 33);
	expect_bad_input(state, "a.jsonl: line 2: ");
	fixture_write(state, "in/a.jsonl", "{\"text\":\"one\"}\n\0\0", 18);
	expect_bad_input(state, "a.jsonl: line 2: ");
}

/* C4 and Dolma have lines whose text is null. */
static void test_null_texts(void **state)
{
	struct wlb_build_result r;
	write_gzip(state, "in/a.json.gz", "{\"text\":null}\n{\"text\":\"one\"}\n{\"text\":null}\n{\"text\":\"two\"}\n");
	fixture_write_text(state, "in/b.json", "[{\"text\":null},{\"text\":\"three\"}]");
	build_good(state, &r);
	assert_int_equal(r.documents, 3);
	assert_int_equal(r.omitted.no_text, 3);
	assert_says(r.first.no_text.message, "a.json.gz: line 1: field 'text' is null");
	expect_document(state, 1, "two", 3);
	expect_document(state, 2, "three", 5);
	assert_int_equal(unlink(fixture_path(state, "out.bin")), 0);
	assert_int_equal(unlink(fixture_path(state, "out.idx")), 0);
	assert_int_equal(unlink(fixture_path(state, "out.facts.json")), 0);
	strict = 1;
	expect_bad_input(state, "a.json.gz: line 1: field 'text' is null");
	strict = 0;
	fixture_write_text(state, "in/a.json.gz", "{\"text\":null}\n");
	fixture_write_text(state, "in/b.json", "{\"text\":null}\n");
	expect_bad_input(state, "2 files, 0 not text, 0 too short, 2 null, ");
}

/* The documents before the damage are not taken for the whole file. */
static void test_damaged_jsonl(void **state)
{
	enum { LINES = 5000 };
	struct wlb_build_result r;
	size_t bytes;
	fixture_write_text(state, "in/a", "text");
	gzFile file = gzopen(fixture_path(state, "in/cut.jsonl.gz"), "w");
	for (int i = 0; i < LINES; i++)
		assert_true(gzprintf(file, "{\"text\":\"%x\"}\n", 2654435761U * (unsigned)i) > 0);
	assert_int_equal(gzclose(file), Z_OK);
	free(fixture_read(fixture_path(state, "in/cut.jsonl.gz"), &bytes));
	assert_int_equal(truncate(fixture_path(state, "in/cut.jsonl.gz"), (off_t)bytes / 2), 0);
	expect_bad_input(state, "cannot be read: the compressed data end too early: repair the file, or remove it");
	fixture_write_text(state, "in/cut.jsonl.gz", "\x1f\x8b\x08 this is not deflate");
	expect_bad_input(state, "cut.jsonl.gz: line 1: cannot be read: ");
	assert_int_equal(unlink(fixture_path(state, "in/cut.jsonl.gz")), 0);
	build_good(state, &r);
}

static void test_nothing_found(void **state)
{
	expect_bad_input(state, "no document was found");
	fixture_write_text(state, "in/empty", "");
	expect_bad_input(state, "1 files, 0 not text, 1 too short, 0 null, 0 symbolic links, 0 unreadable");
	assert_int_equal(unlink(fixture_path(state, "in/empty")), 0);
	assert_int_equal(symlink("../blobs/x", fixture_path(state, "in/x.jsonl")), 0);
	expect_bad_input(state, "0 files, 0 not text, 0 too short, 0 null, 1 symbolic links (only followed where");
	assert_int_equal(unlink(fixture_path(state, "in/x.jsonl")), 0);
	fixture_write_text(state, "in/refused", "text");
	refused = "refused";
	expect_bad_input(state, "1 unreadable: ");
	expect_bad_input(state, "in/refused: cannot be opened: Input/output error");
	refused = "";
	assert_int_equal(unlink(fixture_path(state, "in/refused")), 0);
	assert_int_equal(rmdir(fixture_path(state, "in")), 0);
	mkdir(fixture_path(state, "other"), 0777);
	expect_bad_input(state, "in: cannot be read: No such file or directory");
}

static void test_unreadable_files_are_left_out(void **state)
{
	struct wlb_build_result r;
	fixture_write_text(state, "in/a", "text");
	fixture_write_text(state, "in/b", "more");
	refused = "b";
	build_good(state, &r);
	refused = "";
	assert_int_equal(r.documents, 1);
	assert_int_equal(r.omitted.unreadable, 1);
	assert_says(r.first.unreadable.message, "in/b: cannot be opened: Input/output error");
}

/* A dataset without a file that is there, and that no second build could read either, would not be noticed. */
static void test_damaged_text(void **state)
{
	size_t bytes;
	fixture_write_text(state, "in/a", "text");
	fixture_write_text(state, "in/damaged.gz", "\x1f\x8b\x08 this is not deflate");
	expect_bad_input(state, "damaged.gz: cannot be read: ");
	assert_int_equal(unlink(fixture_path(state, "in/damaged.gz")), 0);
	write_gzip(state, "in/cut.gz", "a text that was longer before it was cut");
	free(fixture_read(fixture_path(state, "in/cut.gz"), &bytes));
	assert_int_equal(truncate(fixture_path(state, "in/cut.gz"), (off_t)bytes - 9), 0);
	expect_bad_input(state, "cut.gz: cannot be read: the compressed data end too early: repair the file, or");
}

static void test_largest_document(void **state)
{
	struct wlb_build_result r;
	char *text = malloc(LARGEST_DOCUMENT_BYTES + 1);
	memset(text, 'x', LARGEST_DOCUMENT_BYTES);
	fixture_write_text(state, "in/a", "text");
	fixture_write(state, "in/b", text, LARGEST_DOCUMENT_BYTES - 1);
	build_good(state, &r);
	assert_int_equal(r.tokens, 5 + LARGEST_DOCUMENT_BYTES);
	assert_int_equal(unlink(fixture_path(state, "out.bin")), 0);
	assert_int_equal(unlink(fixture_path(state, "out.idx")), 0);
	assert_int_equal(unlink(fixture_path(state, "out.facts.json")), 0);
	fixture_write(state, "in/b", text, LARGEST_DOCUMENT_BYTES);
	expect_bad_input(state, "in/b: a document must have less than 400000 bytes: split it");
	assert_int_equal(rename(fixture_path(state, "in/b"), fixture_path(state, "in/b.jsonl")), 0);
	expect_bad_input(state, "in/b.jsonl: line 1: a document must have less than 400000 bytes: split it");
	free(text);
}

/* What a file holds is told by its content, and its name only refuses what contradicts it. `documents` are the texts,
 * in order, each followed by a line end; NULL: the build of the file, found in a folder, fails with `why`. */
static const struct content {
	const char *name;
	const char *content;
	const char *documents;
	const char *why;
} contents[] = {
	{"c4.json", "{\"text\":\"one\",\"url\":\"u\"}\n{\"text\":\"two\"}\n", "one\ntwo\n", NULL},
	{"dolma", "{\"id\":1,\"text\":\"one\"}", "one\n", NULL},
	{"x.txt", "\n {\"text\":\"one\"}\r\n\r\n{\"text\":\"two\"}", "one\ntwo\n", NULL},
	{"x.ndjson", "{\"text\":\"one\"}\n", "one\n", NULL},
	{"x.JSONL", "{\"text\":\"one\"}\n", "one\n", NULL},
	{"bom.json", "\xef\xbb\xbf{\"text\":\"one\"}\n", "one\n", NULL},
	{"bom.txt", "\xef\xbb\xbfplain", "plain\n", NULL},
	{"array.json", "[{\"text\":\"one\"},\n {\"text\":\"two\",\"n\":NaN}]\n", "one\ntwo\n", NULL},
	{"array", "\xef\xbb\xbf [\n{\"text\":\"one\"}\n]", "one\n", NULL},
	{"array.txt", "[{\"text\":\"half \\ud83d\"}]", "half \xef\xbf\xbd\n", NULL},
	{"pretty.json", "{\n \"text\": \"one\"\n}\n{\n \"text\": \"two\"\n}", "one\ntwo\n", NULL},
	{"joined.json", "{\"text\":\"one\"}{\"text\":\"two\"}", "one\ntwo\n", NULL},
	{"arrays.json", "[{\"text\":\"one\"}]\n[]\n[{\"text\":\"two\"}]", "one\ntwo\n", NULL},
	{"link.md", "[a](b) is a link", "[a](b) is a link\n", NULL},
	{"foot.txt", "[1] Smith, 2020", "[1] Smith, 2020\n", NULL},
	{"tex", "{\\bf NaN} \\ud83d [1e999]", "{\\bf NaN} \\ud83d [1e999]\n", NULL},
	{"open", "{ \"text\": \"", "{ \"text\": \"\n", NULL},
	{"long.c", "{\"text\":\"one\"", "{\"text\":\"one\"\n", NULL},
	/* Records whose text has another key would train as raw JSON; in a folder of sources they are settings. */
	{"lines.json", "{\"content\":\"one\"}\n{\"content\":\"two\"}\n", NULL,
         "1 not text, 0 too short, 0 null, 0 symbolic links, 0 unreadable: "},
	{"lines.json", "{\"content\":\"one\"}\n", NULL, "lines.json: line 1: field 'text' is missing"},
	{"array.json", "[{\"content\":\"one\"}]", NULL, "array.json: value 1: field 'text' is missing"},
	{"pretty", "{\n\"name\": \"one\"\n}", NULL, "pretty: value 1: field 'text' is missing"},
	{"numbers.json", "[1, 2]", NULL, "numbers.json: value 1: no object: each value must be a JSON object"},
	{"nested.json", "[[{\"text\":\"one\"}]]", NULL, "nested.json: value 1: an array: each value must be"},
	{"cut.json", "[{\"text\":\"one\"},", NULL, "cut.json: is named as JSON, but is none: "},
	{"prose.json", "plain", NULL, "prose.json: is named as JSON, but begins with neither"},
	{"prose.jsonl", "plain", NULL, "prose.jsonl: line 1: "},
	{"array.jsonl", "[{\"text\":\"one\"}]", NULL, "array.jsonl: line 1: an array"},
	{"blank.json", "\n \n", NULL, "1 files, 0 not text, 0 too short, 0 null, "},
	{"empty.json", "", NULL, "1 files, 0 not text, 0 too short, 0 null, "},
	/* Where records have begun, each that follows is one. */
	{"late.json", "{\"text\":\"one\"}\n{\"content\":\"two\"}\n", NULL, "late.json: line 2: field 'text' is"},
	{"late.txt", "{\"text\":\"one\"}\nplain\n", NULL, "late.txt: line 2: "},
	{"first", "{\"text\":\"caf\xe9\"}\n{\"text\":\"two\"}\n", NULL, "first: line 1: "},
	{"first.json", "{\"text\":\"one\n{\"text\":\"two\"}\n", NULL, "first.json: line 1: "},
	{"late", "[{\"text\":\"one\"},{\"text\":3}]", NULL, "late: value 2: field 'text' is not a string"},
};

static void expect_content(void **state, const char *name, const struct content *content)
{
	struct wlb_build_result r;
	if (content->documents == NULL) {
		expect_bad_input(state, content->why);
	} else {
		int64_t documents = 0;
		build_good(state, &r);
		for (const char *at = content->documents; *at != '\0'; at += strcspn(at, "\n") + 1)
			expect_document(state, (int)documents++, at, strcspn(at, "\n"));
		if (r.documents != documents)
			fail_msg("%s: %lld documents, not %lld", name, (long long)r.documents, (long long)documents);
		assert_int_equal(unlink(fixture_path(state, "out.bin")), 0);
		assert_int_equal(unlink(fixture_path(state, "out.idx")), 0);
		assert_int_equal(unlink(fixture_path(state, "out.facts.json")), 0);
	}
	assert_int_equal(unlink(fixture_path(state, name)), 0);
}

static void test_content(void **state)
{
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		static const char *const ends[] = {"", ".gz"};
		char name[64];
		snprintf(name, sizeof(name), "in/%s", contents[i].name);
		fixture_write_text(state, name, contents[i].content);
		expect_content(state, name, &contents[i]);
		write_gzip(state, name, contents[i].content); /* without the end .gz */
		expect_content(state, name, &contents[i]);
		for (size_t e = 0; contents[i].why == NULL && e < 2; e++) {
			snprintf(name, sizeof(name), "in/%s%s", contents[i].name, ends[e]);
			write_gzip(state, name, contents[i].content);
			expect_content(state, name, &contents[i]);
		}
	}
	fixture_write_text(state, "in/plain.gz", "not compressed");
	expect_content(state, "in/plain.gz", &(const struct content){.documents = "not compressed\n"});
}

/* A file that the user has named is used, or the build fails; one that is found in a folder is left out. */
static void test_named_files(void **state)
{
	struct wlb_build_result r;
	struct wlb_error error;
	int bad_input = 0;
	char *inputs[] = {strdup(fixture_path(state, "in")), strdup(fixture_path(state, "in/c4.json")), NULL};
	struct wlb_build_options options = {
		.inputs = inputs,
		.output_prefix = fixture_path(state, "out"),
		.source = {"text", LARGEST_DOCUMENT_BYTES, {NULL, NULL}, 0, 0, &interrupted},
		.min_bytes = 1};
	fixture_write_text(state, "in/a", "text");
	fixture_write_text(state, "in/c4.json", "{\"content\":\"one\"}\n");
	build_good(state, &r);
	assert_int_equal(r.documents, 1);
	assert_int_equal(r.omitted.not_text, 1);
	assert_says(r.first.not_text.message, "c4.json: line 1: field 'text' is missing");
	assert_int_equal(wlb_build(&options, &r, &bad_input, &error), -1);
	assert_true(bad_input);
	assert_says(error.message, "c4.json: line 1: field 'text' is missing: it must be a string (see --json-key)");
	free(inputs[0]);
	free(inputs[1]);
}

/* Appends a member of gzip with this text; returns its bytes. */
static long append_member(void **state, const char *name, const char *text)
{
	const char *path = fixture_path(state, name);
	gzFile file = gzopen(path, "a");
	assert_non_null(file);
	assert_int_equal(gzputs(file, text), strlen(text));
	assert_int_equal(gzclose(file), Z_OK);
	FILE *whole = fopen(path, "r");
	assert_int_equal(fseek(whole, 0, SEEK_END), 0);
	long bytes = ftell(whole);
	fclose(whole);
	return bytes;
}

/* Members one behind the other are one file; a cut anywhere but between them is found, and what is appended too. */
static void test_members(void **state)
{
	struct wlb_build_result r;
	long first = append_member(state, "in/a.json.gz", "{\"text\":\"one\"}\n{\"text\":");
	long both = append_member(state, "in/a.json.gz", "\"two\"}\n{\"text\":\"three\"}\n");
	build_good(state, &r);
	assert_int_equal(r.documents, 3);
	expect_document(state, 1, "two", 3);
	expect_document(state, 2, "three", 5);
	assert_int_equal(unlink(fixture_path(state, "out.bin")), 0);
	assert_int_equal(unlink(fixture_path(state, "out.idx")), 0);
	assert_int_equal(unlink(fixture_path(state, "out.facts.json")), 0);
	for (long bytes = both - 1; bytes > first; bytes--) {
		assert_int_equal(truncate(fixture_path(state, "in/a.json.gz"), bytes), 0);
		expect_bad_input(state, "a.json.gz: ");
	}
	for (long bytes = first - 1; bytes > 2; bytes--) {
		assert_int_equal(truncate(fixture_path(state, "in/a.json.gz"), bytes), 0);
		expect_bad_input(state, "a.json.gz: ");
	}
	assert_int_equal(unlink(fixture_path(state, "in/a.json.gz")), 0);
	append_member(state, "in/b.gz", "text");
	FILE *file = fopen(fixture_path(state, "in/b.gz"), "a");
	fputs("more text", file);
	fclose(file);
	expect_bad_input(state, "b.gz: cannot be read: what follows its compressed data is not compressed: repair");
}

/* bgzip writes members that say their sizes, the last one without data. */
static void test_bgzip(void **state)
{
	static const char block[] =
		"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x1d\0\x4b\x4c\x02\0\x6d\x48\x83\x9e\x02\0\0\0";
	static const char last[] = "\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x1b\0\x03\0\0\0\0\0\0\0\0\0";
	struct wlb_build_result r;
	char whole[sizeof(block) + sizeof(last)];
	memcpy(whole, block, sizeof(block) - 1);
	memcpy(whole + sizeof(block) - 1, last, sizeof(last) - 1);
	fixture_write(state, "in/a.gz", whole, sizeof(block) - 1);
	expect_bad_input(state, "a.gz: cannot be read: it ends without the empty block that bgzip writes last");
	fixture_write(state, "in/a.gz", whole, sizeof(block) + sizeof(last) - 2);
	build_good(state, &r);
	expect_document(state, 0, "ab", 2);
}

/* Files that other tools read; the shortest of them have no NUL byte. */
static void test_other_formats(void **state)
{
	static const char zstd[] = "\x28\xb5\x2f\xfd\x24\x1a\xd1words\x7b\xcf\x1d\xd9";
	static const char bzip2[] = "BZh91AY&SY\x9a\xbc";
	static const char parquet[] = "PAR1\x15\x04\x15\0";
	char tar[512] = "name";
	fixture_write(state, "in/a.jsonl.zst", zstd, sizeof(zstd) - 1);
	expect_bad_input(state, "in/a.jsonl.zst: has the format Zstandard: decompress it with zstd -d; only text");
	assert_int_equal(unlink(fixture_path(state, "in/a.jsonl.zst")), 0);
	fixture_write(state, "in/a", bzip2, sizeof(bzip2) - 1);
	expect_bad_input(state, "in/a: has the format bzip2");
	fixture_write(state, "in/a", parquet, sizeof(parquet) - 1);
	expect_bad_input(state, "in/a: has the format Parquet");
	memcpy(tar + 257, "ustar", 5);
	fixture_write(state, "in/a", tar, sizeof(tar));
	expect_bad_input(state, "in/a: has the format tar");
	fixture_write_text(state, "in/a", "text");
	write_gzip(state, "in/b.gz", "\x1f\x8b\x08 inside");
	struct wlb_build_result r;
	build_good(state, &r);
	assert_int_equal(r.documents, 1);
	assert_says(r.first.not_text.message, "b.gz: has the format gzip inside of gzip: decompress it once");
	assert_int_equal(unlink(fixture_path(state, "out.bin")), 0);
	assert_int_equal(unlink(fixture_path(state, "out.idx")), 0);
	assert_int_equal(unlink(fixture_path(state, "out.facts.json")), 0);
	fixture_write(state, "in/c.jsonl", parquet, sizeof(parquet) - 1);
	expect_bad_input(state, "in/c.jsonl: has the format Parquet: write its rows as JSONL");
}

static void test_old_dataset_is_replaced(void **state)
{
	struct wlb_build_result r;
	fixture_write_text(state, "in/a", "old");
	build_good(state, &r);
	fixture_write_text(state, "in/a", "newer");
	build_good(state, &r);
	expect_document(state, 0, "newer", 5);
	assert_int_equal(fixture_entries(*state), 4);
}

/* Builds with a signal during read `reads`, after which nothing more is read: the old dataset stays. */
static void expect_interrupted(void **state, int reads)
{
	struct wlb_build_result r;
	struct wlb_error error;
	int bad_input = 1;
	reads_left = reads;
	assert_int_equal(build(state, &r, &bad_input, &error), -1);
	assert_int_equal(reads_left, 0);
	interrupted = 0;
	assert_false(bad_input);
	assert_says(error.message, "interrupted");
	assert_int_equal(fixture_entries(*state), 4);
	expect_document(state, 0, "old", 3);
}

static void test_interrupted(void **state)
{
	enum { LENGTH = 300000 };
	struct wlb_build_result r;
	char *text = malloc(LENGTH + 32);
	fixture_write_text(state, "in/a", "old");
	build_good(state, &r);
	assert_int_equal(unlink(fixture_path(state, "in/a")), 0);
	memset(text, 'x', LENGTH);
	text[LENGTH] = '\0';
	fixture_write_text(state, "in/b", text);
	for (int reads = 1; reads <= 1 + LENGTH / 65536; reads++) /* up to the end of the last file */
		expect_interrupted(state, reads);
	assert_int_equal(unlink(fixture_path(state, "in/b")), 0);
	strcpy(text + LENGTH, "\"}\n{\"text\":\"last\"}\n");
	memcpy(text, "{\"text\":\"", 9);
	fixture_write_text(state, "in/c.jsonl", text);
	for (int reads = 1; reads <= 2 + LENGTH / 65536; reads++)
		expect_interrupted(state, reads);
	free(text);
}

/* Nothing is left, and the old dataset stays, at whatever byte the disk is full. */
static void test_failing_writes(void **state)
{
	struct rlimit normal, limited;
	struct wlb_build_result r;
	struct wlb_error error;
	int failures = 0, rc, bad_input;
	signal(SIGXFSZ, SIG_IGN);
	fixture_write_text(state, "in/a", "old");
	build_good(state, &r);
	fixture_write_text(state, "in/a", "a longer text, in uint16 tokens about a hundred bytes");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &normal), 0);
	for (rlim_t bytes = 0;; bytes += 8) {
		limited = (struct rlimit){bytes, normal.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
		rc = build(state, &r, &bad_input, &error);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &normal), 0);
		if (rc == 0)
			break;
		failures++;
		assert_false(bad_input);
		assert_says(error.message, "File too large");
		assert_says(error.message, fixture_path(state, "out."));
		assert_int_equal(fixture_entries(*state), 4);
		expect_document(state, 0, "old", 3);
	}
	assert_true(failures > 5);
	assert_int_equal(fixture_entries(*state), 4);
}

static void test_info(void **state)
{
	struct wlb_error error;
	struct wlb_info info;
	int32_t tokens[1000] = {0};
	const char *prefix = fixture_path(state, "out");
	struct wlb_index_writer *w = wlb_index_writer_new(prefix, WLB_INDEX_UINT16, &error);
	assert_non_null(w);
	for (int32_t length = 0; length < 1000; length++)
		assert_int_equal(wlb_index_writer_add(w, tokens, &length, 1, &error), 0);
	assert_int_equal(wlb_index_writer_commit(w, "{}", &error), 0);
	wlb_index_writer_free(w);
	struct wlb_dataset *d;
	assert_int_equal(wlb_dataset_open(prefix, &d, &error), 0);
	assert_int_equal(wlb_info_compute(d, &info, &error), 0);
	wlb_dataset_close(d);
	assert_int_equal(info.documents, 1000);
	assert_int_equal(info.tokens, 999 * 1000 / 2);
	assert_int_equal(info.longest, 999);
	assert_true(info.mean == 499.5);
	static const int64_t quantiles[] = {99, 499, 899, 949, 989, 998}; /* the k-th of 1000 has k - 1 tokens */
	for (int q = 0; q < WLB_INFO_QUANTILES; q++)
		assert_int_equal(info.quantile[q], quantiles[q]);
	assert_int_equal(info.bin_documents[0], 1);
	assert_int_equal(info.bin_documents[1], 1);
	assert_int_equal(info.bin_documents[9], 256); /* 256 .. 511 */
	assert_int_equal(info.bin_documents[10], 488);
	int64_t all = 0;
	for (int b = 0; b < WLB_INFO_BINS; b++)
		all += info.bin_tokens[b];
	assert_int_equal(all, info.tokens);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_files_in_order_of_names, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_links_count_once, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_jsonl, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_jsonl_of_other_programs, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_long_lines_and_files, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_malformed_jsonl, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_null_texts, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_jsonl, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_nothing_found, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_unreadable_files_are_left_out, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_text, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_largest_document, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_content, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_named_files, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_members, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_bgzip, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_other_formats, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_old_dataset_is_replaced, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_interrupted, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_failing_writes, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_info, setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("build", tests, NULL, NULL);
}
