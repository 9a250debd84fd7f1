#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/history/fault_table.h"
#include "coordinator/wlb/output/fault_text.h"

static void each_kind_names_where(void **state)
{
	static const struct {
		const char *entry;
		const char *where;
	} cases[] = {
		{"{'kind':'hang','ranks':[3],'rank_count':1,'nodes':['n2']}", "rank 3 on n2"},
		{"{'kind':'hang','ranks':[3],'rank_count':1,'nodes':[]}", "rank 3"},
		{"{'kind':'deadlock','ranks':[1,2],'rank_count':2,'nodes':['n1','n2']}", "ranks 1,2 on n[1-2]"},
		{"{'kind':'slow_compute','ranks':[0,1,2,3,4],'rank_count':5,'nodes':['n1']}", "5 ranks on n1"},
		{"{'kind':'hang_in_communication','ranks':[0,1,2,3],'rank_count':64,'nodes':['n1']}", "64 ranks on n1"},
		{"{'kind':'hang_in_communication','ranks':[5,3],'rank_count':2,'nodes':['n1']}", "link 5>3"},
		{"{'kind':'slow_link','ranks':[3,5],'rank_count':2,'nodes':['n1','n2']}", "link 3>5"},
		{"{'kind':'slow_nic','ranks':[4,5],'rank_count':2,'nodes':['n3']}", "node n3"},
		{"{'kind':'node_lost','ranks':[],'rank_count':0,'nodes':['n3']}", "node n3"},
		{"{'kind':'step_failed','ranks':[],'rank_count':0,'nodes':[]}", "-"},
		{"{'kind':7,'ranks':'x','rank_count':-4,'nodes':{}}", "-"},
		{"{'ranks':['x'],'rank_count':1000000000000}", "1000000000000 ranks"},
		{"{}", "-"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512], where[128];
		snprintf(text, sizeof(text), "%s", cases[i].entry);
		for (char *c = text; *c != '\0'; c++)
			if (*c == '\'')
				*c = '"';
		json_t *entry = json_loads(text, 0, NULL);
		assert_non_null(entry);
		wlb_fault_where(entry, where, sizeof(where));
		assert_string_equal(where, cases[i].where);
		json_decref(entry);
	}
	(void)state;
}

static void evidence_is_below_its_row(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	setenv("TZ", "UTC0", 1);
	json_t *entries = json_pack("[{s:s, s:s, s:i, s:s, s:s, s:[i], s:i, s:[s], s:f, s:s, s:s},"
	                            " {s:s, s:s, s:i, s:s, s:s, s:[], s:i, s:[s], s:s}]",
	                            "time", "2026-11-20T10:00:00Z", "run_id", "12", "attempt", 1, "kind",
	                            "hang_in_communication", "state", "confirmed", "ranks", 3, "rank_count", 1, "nodes",
	                            "n2", "cost_percent", 99.6, "action", "evict", "evidence",
	                            "rank 3 on n2 has computed for 200 s; ranks 0 to 2 wait for it in call 51 of dp",
	                            "time", "2026-11-20T10:00:01Z", "run_id", "12", "attempt", 1, "kind", "node_lost",
	                            "state", "confirmed", "ranks", "rank_count", 0, "nodes", "n1", "evidence", "");
	assert_non_null(entries);
	assert_int_equal(wlb_fault_table_print(entries, 0, WLB_FAULT_ROWS_OF_RUNS, 60, out), 0);
	fclose(out);
	assert_string_equal(
		text,
		"  TIME                 RUN  ATTEMPT  KIND                   WHERE         STATE       COST  ACTION\n"
		"  2026-11-20 10:00:00  12         1  hang in communication  rank 3 on n2  confirmed  100 %  evict\n"
		"      rank 3 on n2 has computed for 200 s; ranks 0 to 2 wait\n"
		"      for it in call 51 of dp\n"
		"  2026-11-20 10:00:01  12         1  node lost              node n1       confirmed      -  -\n");
	free(text);
	json_decref(entries);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_names_where),
		cmocka_unit_test(evidence_is_below_its_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
