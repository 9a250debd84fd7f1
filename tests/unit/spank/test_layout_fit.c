/* Which layouts sbatch refuses, and when it does not know enough. */
#include "spank/layout_fit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int tasks(const char *options, const char *script)
{
	char text[256], *words[17];
	int count = 0;
	snprintf(text, sizeof(text), "sbatch %s", options);
	for (char *word = strtok(text, " "); word != NULL && count < 16; word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
	return wlb_layout_fit_tasks(words, script);
}

static void tasks_that_are_certain(void **state)
{
	(void)state;
	assert_int_equal(tasks("--ntasks-per-node=4", "#!/bin/sh\nwlb run -- train\n"), 4);
	assert_int_equal(tasks("-N2 --ntasks-per-node 8 -J x", "#!/bin/sh\nwlb run -- train\n"), 8);
	assert_int_equal(tasks("", "#!/bin/sh\n#SBATCH --ntasks-per-node=2\nwlb run -- train\n"), 2);
	assert_int_equal(tasks("", "#!/bin/sh\n#SBATCH -N 2 --ntasks-per-node 3 # three\nwlb run -- train\n"), 3);
}

static void tasks_that_are_not(void **state)
{
	static const struct {
		const char *options, *script;
	} cases[] = {
		{"", "#!/bin/sh\nwlb run -- train\n"},
		{"-N2 -n4", "#!/bin/sh\nwlb run -- train\n"},
		{"--ntasks-per-node=4", "#!/bin/sh\nwlb run --tasks-per-node=3 -- train\n"},
		{"--ntasks-per-node=4", "#!/bin/sh\n#SBATCH --ntasks-per-node=3\nwlb run -- train\n"},
		{"--ntasks-per-node=4 --ntasks-per-node=3", "#!/bin/sh\nwlb run -- train\n"},
		{"--ntasks-per-nod=4", "#!/bin/sh\nwlb run -- train\n"},
		{"--tasks-per-node=4", "#!/bin/sh\nwlb run -- train\n"},
		{"--ntasks-per-node=4", "#!/bin/sh\nsrun train\n"},
		{"--ntasks-per-node=4", "#!/bin/sh\nwlb run --srun-args -n3 -- train\n"},
		{"--ntasks-per-node=4", "#!/bin/sh\nexport SLURM_NTASKS_PER_NODE=3\nwlb run -- train\n"},
		{"--ntasks-per-node=4", "#!/bin/sh\n. ./train.sh\n"},
		{"--ntasks-per-node=4x", "#!/bin/sh\nwlb run -- train\n"},
		{"--ntasks-per-node=0", "#!/bin/sh\nwlb run -- train\n"},
		{"--ntasks-per-node=99999", "#!/bin/sh\nwlb run -- train\n"},
		{"-N1 : --ntasks-per-node=3", "#!/bin/sh\nwlb run -- train\n"},
		{"", "#!/bin/sh\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH --ntasks-per-node=3\nwlb run -- train\n"},
		{"--ntasks-per-node", "#!/bin/sh\nwlb run -- train\n"},
		{"", "#!/bin/sh\n##SBATCH --ntasks-per-node=2\nwlb run -- train\n"},
		{"", "#!/bin/sh\n#SBATCH -N2 # --ntasks-per-node=2\nwlb run -- train\n"},
		{"", "#!/bin/sh\necho --ntasks-per-node=2\nwlb run -- train\n"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (tasks(cases[i].options, cases[i].script) != 0)
			fail_msg("%s: %s", cases[i].options, cases[i].script);
}

static void layouts_that_never_fit(void **state)
{
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_layout_fit_check("tp=3,cp=1,pp=1", 4, &error), -1);
	assert_string_equal(error.message,
	                    "--wlb-layout=tp=3,cp=1,pp=1 with --ntasks-per-node=4: layout "
	                    "tp=3,cp=1,pp=1,dp=4: tp must divide the ranks of each node, and node 1 has 4; "
	                    "use tp=1, 2 or 4");
	assert_int_equal(wlb_layout_fit_check("tp=8,cp=1,pp=1,dp=2", 4, &error), -1);
}

static void layouts_that_may_fit(void **state)
{
	static const char *const policies[] = {
		"tp=2,cp=1,pp=1",         "tp=4,cp=3,pp=5",      "tp=1,cp=7,pp=1,dp=3",      "auto", "off",
		"tp=1,cp=1000,pp=999999", "tp=4,cp=1,pp=1,dp=3", "tp=1,cp=999999,pp=999999", "bogus"};
	(void)state;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
		if (wlb_layout_fit_check(policies[i], 4, NULL) != 0)
			fail_msg("%s", policies[i]);
	assert_int_equal(wlb_layout_fit_check("tp=3,cp=1,pp=1", 0, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_that_are_certain),
		cmocka_unit_test(tasks_that_are_not),
		cmocka_unit_test(layouts_that_never_fit),
		cmocka_unit_test(layouts_that_may_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
