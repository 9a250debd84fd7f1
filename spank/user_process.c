#include "spank/user_process.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

void wlb_user_process_detach(void)
{
	sigset_t none;
	sigemptyset(&none);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd <= 2; fd++)
		dup2(null, fd);
	close_range(3, ~0U, 0);
	umask(077);
	(void)!chdir("/");
}

int wlb_user_process_become(const struct passwd *user)
{
	if (geteuid() != 0)
		return geteuid() == user->pw_uid ? 0 : -1;
	if (user->pw_uid == 0)
		return 0;
	if (initgroups(user->pw_name, user->pw_gid) != 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0)
		return -1;
	return setuid(0) != 0 ? 0 : -1;
}
