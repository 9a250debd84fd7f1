/* The texts of frames, and of what the kernel refuses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/stacks/demangle.h"
#include "coordinator/stacks/frame_names.h"
#include "coordinator/stacks/refusal.h"

static void each_text_is_made_once(void **state)
{
	(void)state;
	struct wlb_frame_names *names = wlb_frame_names_new();
	struct wlb_frame frame = {.module = "/usr/lib/libx.so.1", .offset = 0x1234};
	assert_null(wlb_frame_name_known(names, &frame));
	frame.function = "step";
	frame.function_offset = 0x12;
	const char *text = wlb_frame_name(names, &frame);
	assert_string_equal(text, "step+0x12 (libx.so.1)");
	frame.function = "another";
	assert_ptr_equal(wlb_frame_name(names, &frame), text);
	frame.module = "/opt/lib/libx.so.1";
	assert_null(wlb_frame_name_known(names, &frame));
	frame.source = "step.c:7";
	assert_string_equal(wlb_frame_name(names, &frame), "another+0x12 at step.c:7 (libx.so.1)");
	for (uint64_t i = 0; i < 20000; i++)
		assert_non_null(wlb_frame_name(names, &(struct wlb_frame){.module = "/a", .offset = i}));
	assert_string_equal(wlb_frame_name_known(names, &(struct wlb_frame){.module = "/a", .offset = 0x77}),
	                    "0x77 (a)");
	wlb_frame_names_free(names);
	wlb_frame_names_free(NULL);
}

static void texts_are_printable_and_bounded(void **state)
{
	(void)state;
	char name[5000];
	struct wlb_frame_names *names = wlb_frame_names_new();
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_in_range(strlen(wlb_frame_name(names, &(struct wlb_frame){name, 1, name, UINT64_MAX, NULL})), 150, 200);
	const char *long_one = wlb_frame_name(names, &(struct wlb_frame){name, 2, name, UINT64_MAX, name});
	assert_in_range(strlen(long_one), 150, 200);
	assert_int_equal(long_one[strlen(long_one) - 1], ')');
	assert_string_equal(wlb_frame_name(names, &(struct wlb_frame){"/a\n/b\x1b", 2, "f\xc3\xa4\x7f", 0, "\t:1"}),
	                    "f???+0x0 at ?:1 (b?)");
	assert_string_equal(wlb_frame_name(names, &(struct wlb_frame){.offset = 0xff}), "0xff (no file)");
	assert_string_equal(wlb_frame_name(names, &(struct wlb_frame){"[vdso: 4711]", 3, "f", 0, NULL}),
	                    "f+0x0 ([vdso])");
	wlb_frame_names_free(names);
}

static void assert_demangled(const char *name, const char *expected)
{
	char text[64];
	wlb_demangle(name, text, sizeof(text));
	assert_string_equal(text, expected);
}

/* Where there is no libstdc++ they stay as they are. */
static void names_of_cxx_are_demangled_without_arguments(void **state)
{
	char text[64];
	(void)state;
	assert_in_range(strlen((wlb_demangle("_Z1>", text, sizeof(text)), text)), 0,
	                4); /* a name that no compiler writes */
	assert_demangled("main", "main");
	assert_demangled("_Zqqq", "_Zqqq");
	wlb_demangle("_ZN4c10d4Work4waitEv", text, sizeof(text));
	if (strcmp(text, "_ZN4c10d4Work4waitEv") == 0)
		skip();
	assert_string_equal(text, "c10d::Work::wait");
	assert_demangled("_ZNK4gloo9transport3tcp15ShortWriteError4whatB5cxx11Ev",
	                 "gloo::transport::tcp::ShortWriteError::what[abi:cxx11]");
	assert_demangled("_ZSt4moveIRSt6vectorIiSaIiEEEONSt16remove_referenceIT_E4typeEOS5_", "std::move");
	assert_demangled("_ZN12_GLOBAL__N_14spinEi", "(anonymous namespace)::spin");
	assert_demangled("_ZN1AclEi", "A::operator()");
	assert_demangled("_ZN1AlsEi", "A::operator<<");
	assert_demangled("_ZN1AcvbEv", "A::operator bool");
	assert_demangled("_ZZN1A1fEvENKUliE_clEi", "A::f::{lambda#1}::operator()");
	assert_demangled("_ZN40xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx40yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyEv",
	                 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx::yyyyyyyyyyyyyyyyyyyyy");
}

static void a_refusal_says_what_to_set(void **state)
{
	(void)state;
	char text[WLB_REFUSAL_SIZE];
	wlb_refusal_text(77, 0, EPERM, text);
	assert_non_null(strstr(text, "process 77 traces it"));
	wlb_refusal_text(0, 1, EPERM, text);
	assert_non_null(
		strstr(text, "kernel.yama.ptrace_scope is 1: only a parent may trace a process; an administrator may"));
	wlb_refusal_text(0, 2, EPERM, text);
	assert_non_null(strstr(text, "CAP_SYS_PTRACE"));
	wlb_refusal_text(0, 3, EPERM, text);
	assert_non_null(strstr(text, "until the node is started again"));
	wlb_refusal_text(0, -1, EPERM, text);
	assert_non_null(strstr(text, "Operation not permitted"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_text_is_made_once),
		cmocka_unit_test(texts_are_printable_and_bounded),
		cmocka_unit_test(names_of_cxx_are_demangled_without_arguments),
		cmocka_unit_test(a_refusal_says_what_to_set),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
