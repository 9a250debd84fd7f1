#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/agent/message.h"

static void knows_its_messages(void **state)
{
	(void)state;
	struct wlb_agent_message message = wlb_agent_message_parse("task 4 1234");
	assert_int_equal(message.kind, WLB_AGENT_MESSAGE_TASK);
	assert_int_equal(message.rank, 4);
	assert_int_equal(message.value, 1234);
	message = wlb_agent_message_parse("exit 0 137");
	assert_int_equal(message.kind, WLB_AGENT_MESSAGE_EXIT);
	assert_int_equal(message.rank, 0);
	assert_int_equal(message.value, 137);
	assert_int_equal(wlb_agent_message_parse("end").kind, WLB_AGENT_MESSAGE_END);
}

static void ignores_all_others(void **state)
{
	(void)state;
	static const char *const others[] = {
		"",           "task",      "task 4",     "task 4 0",    "task -1 5",
		"task 4 5 6", "task 4 5x", "exit 1 256", "exit 1 -1",   "exit  1 2",
		"ending",     "exit 1 2 ", "task 4 ",    "Exit 1 2",    "task 1 99999999999",
		"task +1 5",  "pause 1 2", "exit 1 0x1", "task 1\t2345"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (wlb_agent_message_parse(others[i]).kind != WLB_AGENT_MESSAGE_UNKNOWN && others[i][0] != '\0')
			fail_msg("'%s' is taken for a message", others[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_its_messages),
		cmocka_unit_test(ignores_all_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
