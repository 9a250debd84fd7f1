#include "coordinator/wlb/run/stop/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/wlb/run/stop/parent.h"
#include "coordinator/wlb/run/stop/time_limit.h"

enum { POLL_MS = 200 }; /* between two checks of the job's script */

int wlb_run_signals_block(struct wlb_run *run, struct wlb_error *error)
{
	static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGCONT};
	struct sigaction hang_up;
	sigemptyset(&run->signals);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&run->signals, numbers[i]);
	/* A blocked signal is read even where it is ignored, as SIGHUP is under nohup. */
	if (sigaction(SIGHUP, NULL, &hang_up) != 0 || hang_up.sa_handler != SIG_IGN)
		sigaddset(&run->signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &run->signals, &run->signals_before);
	signal(SIGPIPE, SIG_IGN); /* the run continues if no process reads our stderr */
	run->signal_fd = signalfd(-1, &run->signals, SFD_CLOEXEC);
	return run->signal_fd >= 0 ? 0 : wlb_fail(error, "signals cannot be read: %s", strerror(errno));
}

/* The kernel sends SIGHUP where a terminal hangs up. It sends SIGHUP also to a group of stopped processes, such as a
 * suspended job, once the last parent outside the group has ended. So without a terminal SIGHUP says that the script is
 * lost, and does not cancel the run. */
static bool is_of_lost_script(const struct signalfd_siginfo *info)
{
	if (info->ssi_signo != SIGHUP || info->ssi_code != SI_KERNEL)
		return false;
	int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (terminal >= 0)
		close(terminal);
	return terminal < 0;
}

bool wlb_run_signal_read(struct wlb_run *run, int *number)
{
	struct signalfd_siginfo info;
	*number = 0;
	if (read(run->signal_fd, &info, sizeof(info)) != sizeof(info))
		return false;
	*number = is_of_lost_script(&info) ? 0 : (int)info.ssi_signo;
	if (*number != SIGTERM && *number != SIGINT && *number != SIGHUP)
		return false;
	if (*number == SIGTERM && wlb_run_limit_is_preempted(run)) {
		*number = 0; /* the command is asked to save and stop: time_limit.h */
		return false;
	}
	if (*number == SIGTERM)
		wlb_run_note_sigterm(run);
	else
		run->cancelled = true;
	return true;
}

bool wlb_run_pause(struct wlb_run *run, int ms)
{
	struct pollfd ready = {.fd = run->signal_fd, .events = POLLIN};
	int64_t until_ms = wlb_clock_ms() + ms;
	int number;
	while (!wlb_run_check_parent(run, false) && wlb_clock_left_ms(until_ms) > 0) {
		int left_ms = wlb_clock_left_ms(until_ms);
		if (poll(&ready, 1, left_ms < POLL_MS ? left_ms : POLL_MS) > 0)
			wlb_run_signal_read(run, &number);
	}
	return !wlb_run_must_end(run);
}
