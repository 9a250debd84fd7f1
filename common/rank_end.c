#include "common/rank_end.h"

#include <signal.h>

#include "libwlb/wlb.h"

static bool is_any_of(int exit_code, const int *signals, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (exit_code == 128 + signals[i])
			return true;
	return false;
}

bool wlb_rank_end_is_own(int exit_code)
{
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
	return is_any_of(exit_code, crashes, sizeof(crashes) / sizeof(crashes[0]));
}

bool wlb_rank_end_may_be_slurms(int exit_code)
{
	return exit_code == 128 + SIGTERM || exit_code == 128 + SIGKILL;
}

enum wlb_end_strength wlb_rank_end_strength(int exit_code)
{
	if (exit_code == 128 + SIGKILL || wlb_rank_end_is_own(exit_code))
		return WLB_END_KILLED;
	return exit_code == 128 + SIGPIPE ? WLB_END_BROKEN_PIPE : WLB_END_EXITED;
}

void wlb_rank_end_text(char *text, size_t size, int rank, const char *node, int exit_code)
{
	if (exit_code > 128)
		wlb_text_format(text, size, "rank %d on %s was killed by signal %d", rank, node, exit_code - 128);
	else if (exit_code != 0)
		wlb_text_format(text, size, "rank %d on %s ended with exit code %d", rank, node, exit_code);
	else
		wlb_text_format(text, size, "rank %d on %s is lost", rank, node);
}
