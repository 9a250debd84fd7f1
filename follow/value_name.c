#include "follow/value_name.h"

#include <string.h>

#include "libwlb/wlb.h"

/* Where a name comes from is beside it. Megatron-LM: megatron/training/training.py; torchtitan:
 * torchtitan/components/metrics.py; nanotron: src/nanotron/trainer.py; Hugging Face: Trainer.log and its
 * TensorBoardCallback, which puts "train/" before the names. */
static const struct {
	const char *from, *to;
	double scale;
} names[] = {
	{"lm loss", "loss", 1},                                   /* Megatron-LM, stdout and TensorBoard */
	{"lm_loss", "loss", 1},                                   /* nanotron */
	{"train/loss", "loss", 1},                                /* Hugging Face, TensorBoard; many scripts */
	{"loss/train", "loss", 1},                                /* the example of torch's SummaryWriter */
	{"Loss/train", "loss", 1},                                /* the same */
	{"train_loss", "loss", 1},                                /* Lightning's examples */
	{"training_loss", "loss", 1},                             /* the same */
	{"loss_metrics/global_avg_loss", "loss", 1},              /* torchtitan, TensorBoard */
	{"train/epoch_loss", "epoch_loss", 1},                    /* Keras */
	{"grad norm", "grad_norm", 1},                            /* Megatron-LM, stdout */
	{"grad-norm", "grad_norm", 1},                            /* Megatron-LM, TensorBoard */
	{"train/grad_norm", "grad_norm", 1},                      /* Hugging Face, TensorBoard */
	{"learning rate", "lr", 1},                               /* Megatron-LM, stdout */
	{"learning-rate", "lr", 1},                               /* Megatron-LM, TensorBoard */
	{"learning_rate", "lr", 1},                               /* Hugging Face */
	{"train/learning_rate", "lr", 1},                         /* Hugging Face, TensorBoard */
	{"elapsed time per iteration (ms)", "step_time_s", 1e-3}, /* Megatron-LM, stdout */
	{"iteration-time", "step_time_s", 1},                     /* Megatron-LM, TensorBoard */
	{"time_per_iteration_ms", "step_time_s", 1e-3},           /* nanotron */
	{"elapsed_time_per_iteration_ms", "step_time_s", 1e-3},   /* nanotron before 2025 */
	{"time_metrics/end_to_end(s)", "step_time_s", 1},         /* torchtitan, TensorBoard */
	{"tokens_per_sec", "tokens_per_s", 1},                    /* nanotron */
	{"tokens_per_sec_per_gpu", "tokens_per_s_per_device", 1}, /* nanotron */
	{"tps", "tokens_per_s_per_device", 1},                    /* torchtitan, stdout */
	{"wps", "tokens_per_s_per_device", 1},                    /* torchtitan before 2025, stdout */
	{"throughput(tps)", "tokens_per_s_per_device", 1},        /* torchtitan, TensorBoard */
};

/* The bytes of the escape at the beginning; an unfinished one is the rest of the text. */
static size_t escape_bytes(const char *text, size_t length)
{
	size_t i = 2;
	if (length < 2)
		return length;
	if (text[1] == '[') {
		while (i < length && (text[i] < 0x40 || text[i] > 0x7e))
			i++;
		return i < length ? i + 1 : length;
	}
	if (text[1] != ']')
		return 2;
	while (i < length && text[i] != '\a' && text[i] != '\x1b')
		i++;
	if (i + 1 < length && text[i] == '\x1b')
		i++;
	return i < length ? i + 1 : length;
}

size_t wlb_text_without_escapes(char *to, size_t size, const char *from, size_t length)
{
	size_t used = 0;
	for (size_t i = 0; i < length && used + 1 < size;) {
		if (from[i] == '\x1b')
			i += escape_bytes(from + i, length - i);
		else
			to[used++] = from[i++];
	}
	to[used] = '\0';
	return used;
}

double wlb_value_name(char to[WLB_VALUE_NAME_SIZE], const char *from, size_t length)
{
	char clean[4 * WLB_VALUE_NAME_SIZE], shown[4 * WLB_VALUE_NAME_SIZE];
	wlb_text_without_escapes(clean, sizeof(clean), from, length);
	size_t bytes = wlb_text_show(shown, sizeof(shown), clean);
	while (bytes > 0 && shown[bytes - 1] == ' ')
		shown[--bytes] = '\0';
	const char *begin = shown + strspn(shown, " ");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(begin, names[i].from) == 0) {
			wlb_text_store(to, WLB_VALUE_NAME_SIZE, names[i].to);
			return names[i].scale;
		}
	}
	wlb_text_store(to, WLB_VALUE_NAME_SIZE, begin);
	return 1;
}
