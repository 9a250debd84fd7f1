/* Event files of TensorBoard, as torch and TensorFlow write them (samples/make_tensorboard.py), whole, growing, cut,
 * damaged and read again from a kept place. */
#include "follow/event_files.h"

#include <fcntl.h>
#include <ftw.h>
#include <math.h>
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
#include "follow/event_write.h"
#include "follow/tfrecord.h"

static char dir[] = "/tmp/wlb-events-XXXXXX";
static char path[128];
static struct wlb_event_files *files;
static struct wlb_followed record;
static struct wlb_error error;
static char text[8192];
static double now_s;

static int setup(void **state)
{
	(void)state;
	now_s = 1000;
	files = wlb_event_files_open(dir, &error);
	assert_non_null(files);
	return 0;
}

static int remove_one(const char *name, const struct stat *about, int type, struct FTW *walk)
{
	(void)about, (void)type;
	return walk->level > 0 ? remove(name) : 0;
}

static int teardown(void **state)
{
	(void)state;
	wlb_event_files_close(files);
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* What a poll finds: "STEP name=value ..." for each event. */
static const char *poll_events(void)
{
	int file;
	char *to = text;
	*to = '\0';
	wlb_event_files_poll(files);
	while (wlb_event_files_next(files, now_s, &record, &file)) {
		assert_int_equal(record.step_kind, WLB_FOLLOWED_STEP);
		to += sprintf(to, "%d", (int)record.step);
		for (int i = 0; i < record.count; i++)
			to += sprintf(to, " %s=%.7g", record.values[i].name, record.values[i].value);
		to += sprintf(to, "\n");
	}
	return text;
}

static const char *read_sample(const char *folder)
{
	wlb_event_files_close(files);
	snprintf(path, sizeof(path), WLB_SAMPLES "/tensorboard/%s", folder);
	files = wlb_event_files_open(path, &error);
	wlb_event_files_search(files, 0);
	return poll_events();
}

/* A scalar of a one-letter tag, framed. Returns the bytes. */
static size_t make_event(unsigned char to[64], char tag, int step, float value)
{
	unsigned char data[] = {0x09,
	                        0,
	                        0,
	                        0,
	                        0,
	                        0,
	                        0,
	                        0xf0,
	                        0x3f,
	                        0x10,
	                        (unsigned char)step,
	                        0x2a,
	                        10,
	                        0x0a,
	                        8,
	                        0x0a,
	                        1,
	                        (unsigned char)tag,
	                        0x15,
	                        0,
	                        0,
	                        0,
	                        0};
	unsigned char length[8] = {sizeof(data)};
	uint32_t crcs[2];
	memcpy(data + sizeof(data) - 4, &value, 4);
	crcs[0] = wlb_crc32c(0, length, 8);
	crcs[1] = wlb_crc32c(0, data, sizeof(data));
	for (int i = 0; i < 2; i++)
		crcs[i] = (crcs[i] >> 15 | crcs[i] << 17) + 0xa282ead8;
	memcpy(to, length, 8);
	memcpy(to + 8, &crcs[0], 4);
	memcpy(to + 12, data, sizeof(data));
	memcpy(to + 12 + sizeof(data), &crcs[1], 4);
	return 16 + sizeof(data);
}

static void append(const char *name, const void *bytes, size_t count)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "a");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

static void append_event(const char *name, char tag, int step, float value)
{
	unsigned char event[64];
	append(name, event, make_event(event, tag, step, value));
}

static void torchs_events_are_read(void **state)
{
	(void)state;
	const char *found =
		read_sample("torch"); /* the file of the folder comes first, the folders below in any order */
	const char *first =
		"1 loss=4\n1 lr=0.001\n2 loss=2\n2 lr=0.001\n3 loss=1.333333\n3 lr=nan\n0 without_step=1.5\n";
	assert_memory_equal(found, first, strlen(first));
	assert_non_null(strstr(found, "2 both_a/both=1\n"));
	assert_non_null(strstr(found, "2 both_b/both=2\n"));
	assert_non_null(strstr(found, "0 hp/hparam/loss=10\n"));
	assert_int_equal(strlen(found), strlen(first) + 16 + 16 + 20);
	assert_string_equal(poll_events(), "");
	assert_true(record.time_s > 0);
	assert_int_equal(wlb_event_files_counts(files).files, 4);
}

static void events_as_tensors_are_read(void **state)
{
	(void)state;
	assert_string_equal(read_sample("tensors"), "1 loss=4\n1 double=0.1\n2 loss=2\n2 double=0.1\n");
	assert_true(record.time_s == 1790000002.5);
	assert_string_equal(read_sample("content"), "5 validation/f=2.5 validation/d=-2.5 validation/i=-7 "
	                                            "validation/l=1.099512e+12\n7 validation/after=3\n");
}

static void append_written(struct wlb_event_write *event)
{
	size_t bytes;
	const unsigned char *written = wlb_event_end(event, &bytes);
	append("x.tfevents.1", written, bytes);
}

static void written_events_are_read(void **state)
{
	struct wlb_event_write event;
	char tag[WLB_EVENT_TAG_MOST + 2];
	(void)state;
	wlb_event_begin(&event, 1790000002.5, 0);
	wlb_event_set_version(&event);
	append_written(&event);
	wlb_event_begin(&event, 1790000002.5, 1);
	wlb_event_set_start(&event);
	append_written(&event);
	wlb_event_begin(&event, 1790000003.5, 1000000);
	wlb_event_add(&event, "lm loss", 2.5);
	wlb_event_add(&event, "parts/dp_s", -1e30);
	append_written(&event);
	/* As many as have room, of the longest tags. */
	wlb_event_begin(&event, 1, 1);
	memset(tag, 'a', sizeof(tag) - 1);
	tag[sizeof(tag) - 1] = '\0';
	for (int i = 0; i <= WLB_EVENT_SCALARS_MOST; i++) {
		tag[0] = (char)('A' + i);
		wlb_event_add(&event, tag, i);
	}
	append_written(&event);
	wlb_event_begin(&event, 2, 2);
	wlb_event_add(&event, "after", NAN);
	append_written(&event);
	wlb_event_files_search(files, 0);
	const char *found = poll_events();
	const char *first = "1000000 loss=2.5 parts/dp_s=-1e+30\n1 Aaaa";
	int values = 0;
	assert_memory_equal(found, first, strlen(first));
	assert_non_null(strstr(found, "=31\n2 after=nan\n"));
	for (const char *at = found; (at = strchr(at, '=')) != NULL; at++)
		values++;
	assert_int_equal(values, 2 + WLB_EVENT_SCALARS_MOST + 1);
}

static void a_file_is_read_while_it_grows(void **state)
{
	unsigned char event[64];
	size_t bytes = make_event(event, 'a', 1, 2.5F);
	(void)state;
	wlb_event_files_search(files, 0);
	assert_string_equal(poll_events(), "");
	for (size_t i = 0; i < bytes; i++) {
		append("x.tfevents.1", event + i, 1);
		wlb_event_files_search(files, 0);
		assert_string_equal(poll_events(), i + 1 < bytes ? "" : "1 a=2.5\n");
	}
	append_event("x.tfevents.1", 'a', 2, 2);
	append_event("x.tfevents.2", 'b', 2, 3);
	wlb_event_files_search(files, 0);
	assert_string_equal(poll_events(), "2 a=2\n2 b=3\n");
	assert_string_equal(poll_events(), "");
}

static void a_reader_goes_on_at_its_kept_place(void **state)
{
	(void)state;
	append_event("x.tfevents.1", 'a', 1, 1);
	append_event("x.tfevents.1", 'a', 2, 2);
	wlb_event_files_search(files, 0);
	wlb_event_files_poll(files);
	int file;
	assert_true(wlb_event_files_next(files, now_s, &record, &file));
	assert_int_equal(record.at, 0);
	struct wlb_tail_place place = wlb_event_files_place(files, file);
	assert_int_equal(place.offset, 39);
	wlb_event_files_close(files);
	files = wlb_event_files_open(dir, &error);
	assert_int_equal(wlb_event_files_restore(files, "x.tfevents.1", &place), 0);
	wlb_event_files_search(files, 1e12); /* nothing is new, but this one is known */
	assert_string_equal(poll_events(), "2 a=2\n");
	assert_int_equal(record.at, 39);
	assert_int_equal(truncate(path, 0), 0);
	append_event("x.tfevents.1", 'a', 3, 3);
	poll_events(); /* sees that it is another file */
	assert_string_equal(poll_events(), "3 a=3\n");
	assert_int_equal(wlb_event_files_place(files, 0).generation, 1);
}

static void files_of_earlier_runs_are_left_alone(void **state)
{
	(void)state;
	append_event("x.tfevents.1", 'a', 1, 1);
	wlb_event_files_search(files, 1e12);
	assert_int_equal(wlb_event_files_counts(files).files, 0);
}

static void a_damaged_record_is_passed_over_after_a_while(void **state)
{
	unsigned char event[64];
	size_t bytes = make_event(event, 'a', 1, 1);
	(void)state;
	event[bytes - 10] ^= 1;
	append("x.tfevents.1", event, bytes);
	append_event("x.tfevents.1", 'a', 2, 2);
	wlb_event_files_search(files, 0);
	assert_string_equal(poll_events(), "");
	now_s += WLB_EVENT_PATIENCE_S - 1;
	assert_string_equal(poll_events(), "");
	assert_int_equal(wlb_event_files_counts(files).damaged, 0);
	now_s += 1;
	assert_string_equal(poll_events(), "2 a=2\n");
	assert_int_equal(wlb_event_files_counts(files).damaged, 1);
}

/* Bytes that were written on another node may be seen as zeros first. */
static void a_damaged_length_may_still_arrive(void **state)
{
	unsigned char event[64];
	static const unsigned char zeros[16];
	size_t bytes = make_event(event, 'a', 1, 1);
	(void)state;
	append("x.tfevents.1", zeros, sizeof(zeros));
	wlb_event_files_search(files, 0);
	poll_events();
	now_s += 5;
	assert_int_equal(truncate(path, 0), 0);
	append("x.tfevents.1", event, bytes);
	poll_events();
	assert_string_equal(poll_events(), "1 a=1\n");
	append("x.tfevents.1", zeros, sizeof(zeros));
	poll_events();
	now_s += WLB_EVENT_PATIENCE_S;
	poll_events();
	assert_int_equal(wlb_event_files_counts(files).ended_files, 1);
	append_event("x.tfevents.1", 'a', 2, 2);
	assert_string_equal(poll_events(), "");
	assert_int_equal(wlb_event_files_counts(files).ended_files, 1);
}

/* An image of 9 MB is passed over, in more than one poll. */
static void a_long_record_is_passed_over(void **state)
{
	enum { LENGTH = 9 << 20 };
	unsigned char head[12] = {0};
	char *image = calloc(1, LENGTH + 4);
	int polls = 0;
	(void)state;
	assert_non_null(image);
	for (int i = 0; i < 8; i++)
		head[i] = (unsigned char)((uint64_t)LENGTH >> (8 * i));
	uint32_t crc = wlb_crc32c(0, head, 8);
	crc = (crc >> 15 | crc << 17) + 0xa282ead8;
	memcpy(head + 8, &crc, 4);
	append_event("x.tfevents.1", 'a', 1, 1);
	append("x.tfevents.1", head, sizeof(head));
	append("x.tfevents.1", image, LENGTH + 4);
	append_event("x.tfevents.1", 'a', 2, 2);
	free(image);
	wlb_event_files_search(files, 0);
	assert_string_equal(poll_events(), "1 a=1\n");
	assert_int_equal(wlb_event_files_place(files, 0).offset, 39); /* where a restarted reader begins */
	while (poll_events()[0] == '\0')
		assert_in_range(++polls, 1, 9);
	assert_string_equal(text, "2 a=2\n");
}

static void more_files_than_have_room_are_counted(void **state)
{
	char name[32];
	(void)state;
	for (int i = 0; i < WLB_EVENT_FILES_MOST + 5; i++) {
		snprintf(name, sizeof(name), "x.tfevents.%d", i);
		append_event(name, 'a', 1, 1);
	}
	wlb_event_files_search(files, 0);
	assert_int_equal(wlb_event_files_counts(files).files, WLB_EVENT_FILES_MOST);
	assert_int_equal(wlb_event_files_counts(files).files_left_out, 5);
	wlb_event_files_search(files, 0);
	assert_int_equal(wlb_event_files_counts(files).files_left_out, 5);
}

static void links_and_deep_folders_are_not_followed(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "%s/d", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	append_event("d/x.tfevents.1", 'a', 1, 1);
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("d", path), 0);
	snprintf(path, sizeof(path), "%s/l.tfevents", dir);
	assert_int_equal(symlink("d/x.tfevents.1", path), 0);
	snprintf(path, sizeof(path), "%s/f.tfevents", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	strcpy(path, dir);
	for (int i = 0; i < 12; i++) {
		strcat(path, "/n");
		assert_int_equal(mkdir(path, 0755), 0);
	}
	append_event("n/n/n/n/n/n/n/n/x.tfevents.8", 'b', 1, 1);
	append_event("n/n/n/n/n/n/n/n/n/x.tfevents.9", 'c', 1, 1);
	wlb_event_files_search(files, 0);
	assert_int_equal(wlb_event_files_counts(files).files, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(torchs_events_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(events_as_tensors_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(written_events_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_is_read_while_it_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reader_goes_on_at_its_kept_place, setup, teardown),
		cmocka_unit_test_setup_teardown(files_of_earlier_runs_are_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(a_damaged_record_is_passed_over_after_a_while, setup, teardown),
		cmocka_unit_test_setup_teardown(a_damaged_length_may_still_arrive, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_record_is_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(more_files_than_have_room_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(links_and_deep_folders_are_not_followed, setup, teardown),
	};
	if (mkdtemp(dir) == NULL)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
