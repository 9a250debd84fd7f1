/* Xid errors of GPUs: records of the kernel's log, the driver's lines in them, and which GPUs fail a node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "checks/node/kernel_log.h"
#include "checks/node/xid_check.h"

#define LINE "NVRM: Xid (PCI:0000:3b:00): "

static const double HOUR_S = 3600.0;

static int parse_record(const char *text, struct wlb_kernel_record *record)
{
	static char buffer[WLB_KERNEL_RECORD_BYTES + 1];
	size_t bytes = strlen(text);
	memcpy(buffer, text, bytes);
	return wlb_kernel_record_parse(buffer, bytes, record);
}

static void records_are_those_of_the_kernel(void **state)
{
	(void)state;
	static const char *const others[] = {
		"11,5,100,-;" LINE "79, by a program", /* facility 1 */
		"",
		"6",
		"6,5,100,-",
		"6,5,100,-\n;text",
		"-6,5,100,-;text",
		"6,,100,-;text",
		"6,5,1e9,-;text",
		"6,5, 100,-;text",
		"6,5,1234567890123456789,-;text",
		" 6,5,100,-;text",
	};
	struct wlb_kernel_record record;
	assert_int_equal(parse_record("6,1042,98765432109,-;a; b\n SUBSYSTEM=pci\n", &record), 1);
	assert_string_equal(record.text, "a; b");
	assert_true(record.at_s > 98765.432108 && record.at_s < 98765.432110);
	assert_int_equal(parse_record("3,1,0,c,caller=T7,more=;no end", &record), 1);
	assert_string_equal(record.text, "no end");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(parse_record(others[i], &record), 0);
}

static void lines_of_the_driver_are_parsed(void **state)
{
	(void)state;
	static const char *const others[] = {
		" " LINE "79, text",
		"NVRM: Xid (0000:3b:00): 79, text",
		"NVRM: Xid (PCI:0000:3B:00): 79, text", /* the driver writes small letters */
		"NVRM: Xid (PCI:000:3b:00): 79, text",
		"NVRM: Xid (PCI:000000000:3b:00): 79, text",
		"NVRM: Xid (PCI:0000:3b): 79, text",
		"NVRM: Xid (PCI:0000:3b:00 GPU-X:02): 79, text",
		"NVRM: Xid (PCI:0000:3b:00: 79, text",
		LINE "79",
		LINE "79 text",
		LINE "0, text",
		LINE "-79, text",
		LINE "12345, text",
		LINE ", text",
	};
	struct wlb_xid xid;
	assert_int_equal(wlb_xid_parse(LINE "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", &xid),
	                 1);
	assert_true(xid.gpu.domain == 0 && xid.gpu.bus == 0x3b && xid.gpu.device == 0);
	assert_true(xid.number == 79 && xid.meaning == WLB_XID_FAULT);
	assert_int_equal(wlb_xid_parse("NVRM: Xid (PCI:10008:e1:1f GPU-I:02 GPU-CI:00): 13, pid=7", &xid), 1);
	assert_true(xid.gpu.domain == 0x10008 && xid.gpu.bus == 0xe1 && xid.gpu.device == 0x1f);
	assert_true(xid.number == 13 && xid.meaning == WLB_XID_NO_FAULT);
	assert_int_equal(wlb_xid_parse("NVRM: Xid (PCI:0000:3b:00 GPU-I:02): 94, pid=7", &xid), 1);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(wlb_xid_parse(others[i], &xid), 0);
}

static void faults_are_told_from_errors_of_programs(void **state)
{
	(void)state;
	static const int faults[] = {48, 62, 64, 74, 79, 94, 95, 119, 120, 140};
	static const int others[] = {13, 31, 43, 45, 63, 68, 92, 109, 121, 145, 999};
	struct wlb_xid xid;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		assert_non_null(wlb_xid_fault(faults[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_null(wlb_xid_fault(others[i]));
	assert_int_equal(wlb_xid_parse(LINE
	                               "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
	                               &xid),
	                 1);
	assert_int_equal(xid.meaning, WLB_XID_FAULT);
	assert_int_equal(wlb_xid_parse(LINE
	                               "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
	                               &xid),
	                 1);
	assert_int_equal(xid.meaning, WLB_XID_RECOVERED);
	/* The name of a process is not what the driver says. */
	assert_int_equal(wlb_xid_parse(LINE "154, pid=7, name=) to 0x0 (None), GPU recovery", &xid), 1);
	assert_int_equal(xid.meaning, WLB_XID_FAULT);
}

/* Begins a log of these records, as /dev/kmsg returns them: each read returns one. */
static void begin_log(struct wlb_kernel_log *log, const char *const *records, int count)
{
	int ends[2];
	assert_int_equal(pipe2(ends, O_DIRECT | O_NONBLOCK), 0);
	for (int i = 0; i < count; i++)
		assert_int_equal(write(ends[1], records[i], strlen(records[i])), strlen(records[i]));
	close(ends[1]);
	wlb_kernel_log_begin(log, ends[0]);
}

#define RECORDS(list) (list), (int)(sizeof(list) / sizeof((list)[0]))

static void a_log_begins_where_the_driver_was_loaded(void **state)
{
	(void)state;
	static const char *const records[] = {
		"3,1,1000000,-;NVRM: Xid (PCI:0000:1a:00): 79, off the bus\n",
		"6,2,2000000,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.105.08\n",
		"3,3,3000000,-;" LINE "74, NVLink\n",
		"11,4,4000000,-;" LINE "48, by a program\n",
		"6,5,5000000,-;something else\n",
		"3,6,6000000,-;" LINE "45, a program ended\n",
		"3,7,7000000,-;NVRM: Xid (PCI:0000:5e:00): 31, page fault\n",
	};
	struct wlb_xid_list list = {0};
	struct wlb_kernel_log log;
	struct wlb_error error;
	begin_log(&log, RECORDS(records));
	assert_int_equal(wlb_xid_list_read(&list, &log, &error), 0);
	close(log.fd);
	assert_int_equal(list.count, 2);
	assert_true(list.gpus[0].fault.number == 74 && list.gpus[0].fault.at_s == 3.0);
	assert_true(list.gpus[0].newest.number == 45 && list.gpus[0].newest.at_s == 6.0);
	assert_true(list.gpus[1].gpu.bus == 0x5e && list.gpus[1].newest.number == 31);
	assert_int_equal(list.gpus[1].fault.number, 0);
}

static void reading_is_bounded(void **state)
{
	(void)state;
	static const char *const records[] = {"3,1,1000000,-;" LINE "79, text\n", "3,2,2000000,-;" LINE "31, text\n"};
	struct wlb_xid_list list = {0};
	struct wlb_kernel_log log;
	struct wlb_error error;
	begin_log(&log, RECORDS(records));
	log.records_left = 1;
	assert_int_equal(wlb_xid_list_read(&list, &log, &error), -1);
	assert_non_null(strstr(error.message, "more records than are read"));
	assert_int_equal(list.gpus[0].newest.number, 79);
	log.records_left = 5;
	log.bytes_left = 1;
	assert_int_equal(wlb_xid_list_read(&list, &log, &error), -1);
	assert_int_equal(list.gpus[0].newest.number, 31);
	close(log.fd);
	for (unsigned gpu = 0; gpu < WLB_XID_GPUS_MOST + 5; gpu++)
		wlb_xid_list_add(&list, &(struct wlb_xid){{0, gpu, 0}, 31, WLB_XID_NO_FAULT}, 3.0);
	assert_int_equal(list.count, WLB_XID_GPUS_MOST);
}

/* Where this account may read it. */
static void the_log_of_this_machine_is_read_to_its_end(void **state)
{
	(void)state;
	struct wlb_kernel_record record;
	struct wlb_kernel_log log;
	struct wlb_error error;
	double before_s = 0.0;
	int rc, fd = wlb_kernel_log_open(&error);
	if (fd < 0) {
		assert_non_null(strstr(error.message, "/dev/kmsg: "));
		skip();
	}
	wlb_kernel_log_begin(&log, fd);
	while ((rc = wlb_kernel_log_next(&log, &record, &error)) > 0) {
		assert_true(record.at_s + 60.0 >= before_s);
		before_s = record.at_s;
	}
	assert_int_equal(rc, 0);
	close(fd);
}

static void add(struct wlb_xid_list *list, unsigned bus, int number, enum wlb_xid_meaning meaning, double at_s)
{
	wlb_xid_list_add(list, &(struct wlb_xid){{0, bus, 0}, number, meaning}, at_s);
}

static void assert_finding(const struct wlb_check_report *report, int at, const char *check,
                           enum wlb_check_verdict verdict, const char *measured)
{
	assert_string_equal(report->findings[at].check, check);
	assert_int_equal(report->findings[at].verdict, verdict);
	assert_string_equal(report->findings[at].measured, measured);
}

static void faults_of_the_last_day_fail(void **state)
{
	(void)state;
	struct wlb_check_report *report = calloc(1, sizeof(*report));
	struct wlb_xid_list list = {0};
	const double now_s = 100.0 * HOUR_S;
	add(&list, 1, 31, WLB_XID_NO_FAULT, now_s - 59.0);
	add(&list, 2, 74, WLB_XID_FAULT, now_s - 25.0 * HOUR_S);
	add(&list, 3, 79, WLB_XID_FAULT, now_s - 23.0 * HOUR_S);
	add(&list, 3, 45, WLB_XID_NO_FAULT, now_s - 120.0);
	add(&list, 4, 119, WLB_XID_FAULT, now_s - 2.0 * HOUR_S);
	add(&list, 4, 154, WLB_XID_RECOVERED, now_s + 1.0);
	wlb_xids_judge(&list, now_s, report);
	assert_int_equal(report->count, 4);
	assert_finding(report, 0, "xid 0000:03:00", WLB_CHECK_FAILED,
	               "79 (fallen off the bus), 23.0 h ago; newest: 45, 2 min ago");
	assert_finding(report, 1, "xid 0000:01:00", WLB_CHECK_OK, "newest: 31, 59 s ago");
	assert_finding(report, 2, "xid 0000:02:00", WLB_CHECK_OK,
	               "74 (NVLink error), 25.0 h ago; newest: 74, 25.0 h ago");
	assert_finding(report, 3, "xid 0000:04:00", WLB_CHECK_OK, "newest: 154, 0 s ago");
	free(report);
}

static void a_faulty_gpu_is_never_left_out(void **state)
{
	(void)state;
	struct wlb_check_report *report = calloc(1, sizeof(*report));
	struct wlb_xid_list list = {0};
	for (unsigned bus = 0; bus < 40; bus++)
		add(&list, bus, 31, WLB_XID_NO_FAULT, 1.0);
	add(&list, 40, 79, WLB_XID_FAULT, 2.0);
	wlb_xids_judge(&list, 3.0, report);
	assert_int_equal(report->count, 16);
	assert_string_equal(report->findings[0].check, "xid 0000:28:00");
	free(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_those_of_the_kernel),
		cmocka_unit_test(lines_of_the_driver_are_parsed),
		cmocka_unit_test(faults_are_told_from_errors_of_programs),
		cmocka_unit_test(a_log_begins_where_the_driver_was_loaded),
		cmocka_unit_test(reading_is_bounded),
		cmocka_unit_test(the_log_of_this_machine_is_read_to_its_end),
		cmocka_unit_test(faults_of_the_last_day_fail),
		cmocka_unit_test(a_faulty_gpu_is_never_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
