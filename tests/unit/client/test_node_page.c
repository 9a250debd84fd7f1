#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "coordinator/client/node_page.h"

#define ATTEMPT "6e1b0f3c-3c1e-4c39-9ad5-0d6a3d0c1f11"

static void is_shared(void **state)
{
	(void)state;
	int fd;
	char path[64];
	const char *reason = "";
	struct wlb_node_page *ours = wlb_node_page_create(ATTEMPT, 2, &fd, NULL);
	assert_non_null(ours);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	struct wlb_node_page *theirs = wlb_node_page_open(path, ATTEMPT, NULL);
	assert_non_null(theirs);
	wlb_node_page_set_step(theirs, 12);
	assert_int_equal(wlb_node_page_step(ours), 12);
	wlb_node_page_set_step(theirs, -5);
	assert_int_equal(wlb_node_page_step(ours), 0);
	assert_false(wlb_node_page_must_end(theirs, &reason));
	wlb_node_page_order_end(ours, "node n3 is lost");
	wlb_node_page_order_end(ours, "another reason");
	assert_true(wlb_node_page_must_end(theirs, &reason));
	assert_string_equal(reason, "node n3 is lost");
	wlb_node_page_close(theirs);
	wlb_node_page_close(ours);
	close(fd);
}

/* A rank must not be able to end its agent by SIGBUS. */
static void cannot_be_cut(void **state)
{
	(void)state;
	int fd;
	struct stat status;
	struct wlb_node_page *page = wlb_node_page_create(ATTEMPT, 2, &fd, NULL);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_true(status.st_size >= 4096 + 2 * (off_t)wlb_rank_trace_bytes());
	wlb_node_page_close(page);
	close(fd);
}

static void is_refused_when_it_is_another(void **state)
{
	(void)state;
	int fd;
	char path[64];
	struct wlb_error error;
	struct wlb_node_page *page = wlb_node_page_create(ATTEMPT, 2, &fd, NULL);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	assert_null(wlb_node_page_open(path, "00000000-3c1e-4c39-9ad5-0d6a3d0c1f11", &error));
	assert_non_null(strstr(error.message, "00000000-3c1e"));
	assert_null(wlb_node_page_open("/nowhere", ATTEMPT, &error));
	assert_non_null(strstr(error.message, "/nowhere"));
	assert_null(wlb_node_page_open("/dev/null", ATTEMPT, &error));
	wlb_node_page_close(page);
	close(fd);
}

static void ranks_have_areas(void **state)
{
	(void)state;
	double work;
	int fd;
	char path[64];
	struct wlb_node_page *ours = wlb_node_page_create(ATTEMPT, 2, &fd, NULL);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	struct wlb_node_page *theirs = wlb_node_page_open(path, ATTEMPT, NULL);
	assert_int_equal(wlb_rank_trace_rank(wlb_node_page_area(ours, 0)), -1);
	struct wlb_rank_trace *fourth = wlb_node_page_take_area(theirs, 4), *fifth = wlb_node_page_take_area(theirs, 5);
	assert_true(fourth != NULL && fifth != NULL && fourth != fifth);
	assert_null(wlb_node_page_take_area(theirs, 6));
	wlb_rank_trace_set_step(fifth, 12, 0.0);
	assert_int_equal(wlb_rank_trace_rank(wlb_node_page_area(ours, 1)), 5);
	assert_int_equal(wlb_rank_trace_step(wlb_node_page_area(ours, 1), &work), 12);
	assert_null(wlb_node_page_area(ours, 2));
	/* A second program of the same step has the area of the first. */
	assert_ptr_equal(wlb_node_page_take_area(theirs, 5), fifth);
	assert_int_equal(wlb_rank_trace_step(wlb_node_page_area(ours, 1), &work), 0);
	assert_int_equal(wlb_rank_trace_rank(wlb_node_page_area(ours, 1)), 5);
	wlb_node_page_close(theirs);
	wlb_node_page_close(ours);
	close(fd);
}

/* Pages of an agent of another release: of 576 bytes, without areas, and with areas of another size. */
static void areas_of_another_form_are_not_used(void **state)
{
	(void)state;
	for (int form = 0; form < 2; form++) {
		char path[64];
		const uint32_t area_bytes = 4096;
		int fd = memfd_create("page", MFD_CLOEXEC);
		assert_int_equal(ftruncate(fd, form == 0 ? 576 : 3 * 4096), 0);
		assert_int_equal(pwrite(fd, "wlbpage1", 8, 0), 8);
		assert_int_equal(pwrite(fd, ATTEMPT, sizeof(ATTEMPT), 20), sizeof(ATTEMPT));
		if (form == 1)
			assert_int_equal(pwrite(fd, &area_bytes, 4, 576), 4);
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
		struct wlb_node_page *page = wlb_node_page_open(path, ATTEMPT, NULL);
		assert_non_null(page);
		assert_null(wlb_node_page_area(page, 0));
		assert_null(wlb_node_page_take_area(page, 4));
		wlb_node_page_set_step(page, 3);
		assert_int_equal(wlb_node_page_step(page), 3);
		wlb_node_page_close(page);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_shared),
		cmocka_unit_test(cannot_be_cut),
		cmocka_unit_test(is_refused_when_it_is_another),
		cmocka_unit_test(ranks_have_areas),
		cmocka_unit_test(areas_of_another_form_are_not_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
