/* SPDX-License-Identifier: MIT
 *
 * A training: what tenon train and tenon finetune share between their files. */
#ifndef TN_TOOLS_TRAIN_TRAIN_H
#define TN_TOOLS_TRAIN_TRAIN_H

#include <tenon/parallel.h>
#include <tenon/scaler.h>

#include "progress.h"
#include "report.h"
#include "settings.h"

/* Sums over the samples of an epoch. */
typedef struct tally {
    double loss; /* sum of the losses of all samples */
    int64_t samples;
    int64_t compared, right; /* samples whose class was compared; those that were predicted right */
} tally;

/* What a training or a validation found; NaN: not known. */
typedef struct score {
    bool known;
    double at[METRIC_COUNT];
} score;

/* The folder of the checkpoints, in that of the run. */
#define SAVE_CHECKPOINTS "checkpoints"

typedef struct run {
    settings *set;
    const char *folder; /* --out */
    int lock;           /* descriptor of the folder of checkpoints, which is locked; -1: none */
    /* the objects of the training, which run_free drops */
    tn_dataset *data, *val;
    tn_dataset *names; /* the samples of `val` with the names of their files; NULL: none */
    tn_module *model, *average, *criterion;
    tn_optimizer *optimizer;
    bool evaluates; /* the optimizer computes the loss in its step, any number of times */
    tn_scheduler *scheduler;
    tn_step *whole;         /* with --compile-step: runs whole steps; NULL: without */
    tn_module *loss;        /* the loss that `whole` calls */
    const char *amp;        /* with --amp: the type of the device, for autocast; NULL: without */
    tn_grad_scaler *scaler; /* with --amp where autocast uses float16; NULL: none */
    tn_loader *loader;
    tn_checkpoint *checkpoint;
    tn_state *resumed; /* the state of the checkpoint to continue from, until it is restored */
    bool same_model;   /* --model is that of the checkpoint, or was not given */
    char *spec;        /* the text from which tn_module_parse makes the model; NULL: a program */
    char *program;     /* the digest of the program that the model is; NULL: none (program.h) */
    bool program_kept; /* its copy is beside the checkpoints */
    char *fitted;      /* with --standardize: the transform with what was computed; NULL: without */
    char *head;        /* path of the head of tenon finetune; NULL: none */
    report *report;
    progress *progress;
    int64_t classes; /* of the dataset; 0: none */
    tn_dtype dtype;  /* of the first floating parameter of the model */
    /* the parameters that learn */
    tn_tensor **learning;
    int64_t n_learning;
    /* where the training is */
    int64_t step;    /* steps of the optimizer that were taken */
    int64_t pending; /* batches whose gradients the next step takes */
    tally now;       /* of the current epoch */
    bool has_best;
    double best; /* the best score so far, by which the best checkpoint is chosen */
    metric best_by;
    int64_t best_epoch, best_step; /* when it was found; the epoch may have been a part */
    int64_t scored;                /* the last step with a validation, or at the end of an epoch */
    bool stopped_early;            /* --patience has ended the run */
    bool diverged; /* step_batch failed because the weights, or what is computed with them, are not
                    * finite, although the input is */
    int64_t
        skipped;  /* damaged samples that validations and earlier processes of this run left out */
    double began; /* time at which the current epoch began */
    int64_t counted; /* samples that were counted since `began` */
    /* several processes, or several parts of a batch (ranks.c) */
    tn_comm *group;     /* NULL: one process */
    tn_module *wrapped; /* the model in DistributedDataParallel; NULL: it is trained alone */
    int32_t rank, ranks;
    int64_t shards; /* equal parts of a batch, of which this process has `parts`; 0: none */
    int64_t parts;
    int asked;     /* the signal that asks all processes to stop; 0: none */
    double *slots; /* what each part of a batch found */
} run;

/* ---- build.c: the objects ---- */

/* Opens data and model and makes the other objects. */
tn_status build_all(run *r);
/* Returns the text from which tn_module_parse makes a module with the same state, which the caller
 * frees with tn_free. */
char *build_spec(tn_module *module);
/* Returns whether a module has the entries of a state, with the same shapes; false for NULL. */
bool build_is_alike(tn_module *module, const tn_state *wanted);

/* ---- fit.c ---- */

/* With --standardize, computes the transform of the samples from those of the training, or takes it
 * from the checkpoint that is continued. */
tn_status fit_transform(run *r);
/* Returns the transform of all samples, NULL if there is none. */
const char *fit_text(const run *r);

/* ---- freeze.c ---- */

/* Decides which parameters learn, by --freeze, --unfreeze and the head, and lists them. */
tn_status freeze_all(run *r);
/* Sets the mode of the model: training, but evaluation for layers all of whose parameters are
 * frozen, so that the statistics of a frozen normalization stay. */
tn_status freeze_mode(run *r);

/* ---- head.c ---- */

/* Replaces the head of the model by a new one for the classes of the data. */
tn_status head_replace(run *r);

/* ---- step.c ---- */

/* Makes what --compile-step needs. */
tn_status step_compile(run *r);
/* Returns the input or the target of a batch: floats in the dtype of the model, targets that are
 * integers or booleans as int64. [scoped] */
tn_tensor *step_input(const run *r, tn_pack *batch);
tn_tensor *step_target(const run *r, tn_pack *batch);
/* Runs forward and backward of a batch, whose gradients count as 1 / `share` of a step. */
tn_status step_batch(run *r, tn_pack *batch, int64_t share, double *loss);
/* Takes a step with the gradients of the pending batches. `batch` is the last of them: an optimizer
 * that evaluates the loss evaluates it with this batch. It is NULL at the end of an epoch. */
tn_status step_take(run *r, tn_pack *batch);
/* Calls the module and the loss with a batch. Stores the output and the loss. */
tn_status step_forward(run *r, tn_module *module, tn_pack *batch, tn_tensor **output,
                       tn_tensor **loss);
/* Compares the classes of a batch with the output. `truth` and `predicted` have space for all
 * samples. Sets *known to false if the batch has no classes to compare. */
tn_status step_compare(run *r, tn_pack *batch, tn_tensor *output, int64_t *truth,
                       int64_t *predicted, bool *known);
/* Returns the number of samples of a batch; -1 and a failure if it has no input. */
int64_t step_samples(tn_pack *batch);

/* ---- nonfinite.c ---- */

/* Fails, with the first module whose output is not finite, for a batch whose loss is not. `random`
 * is the state of the generator before the forward pass of the batch. */
tn_status nonfinite_find(run *r, tn_pack *batch, const uint64_t random[3], double loss);

/* ---- validate.c ---- */

/* Computes loss and accuracy of the validation set. */
tn_status validate(run *r, int64_t epoch, score *out);

/* ---- epochs.c: the training itself ---- */

/* Trains until the last epoch or step, or until the user interrupts. Returns TN_ERR_CANCELLED
 * after an interrupt. */
tn_status epochs_run(run *r);

/* ---- find_lr.c ---- */

/* Looks for a learning rate with the objects of a training. Returns the exit status. */
int find_lr(run *r);

/* ---- save.c: files of the run ---- */

struct report_text; /* report_private.h */

/* Makes the folders of the run and locks them. */
tn_status save_begin(run *r);
/* Writes a checkpoint of the current step and removes the oldest ones. */
tn_status save_checkpoint(run *r);
/* Removes what a process that was killed left: a link that was not renamed yet, and checkpoints
 * that are too many. */
void save_clean(const run *r);
/* Makes the newest checkpoint the best one, too. */
tn_status save_best(run *r);
/* Returns the extension of the files of weights. */
const char *save_extension(const run *r);
/* Writes the weights, of the average if there is one, to a file of the folder: "best" or "model"
 * with the extension. */
tn_status save_weights(run *r, const char *name);
/* Appends the names of the classes as a JSON list. A class without a name has its number. */
tn_status save_class_names(const run *r, struct report_text *text);
/* Writes the path of the newest checkpoint, and returns its step; -1 if there is none. */
int64_t save_newest(const run *r, char *path, size_t size);
/* Writes the path of the checkpoint of the best weights, and returns whether it is there. */
bool save_has_best(const run *r, char *path, size_t size);

/* ---- resume.c ---- */

/* Reads the newest checkpoint of the folder and takes over its settings. Fails with a list if the
 * user gave other ones. */
tn_status resume_read(run *r);
/* Compares the model with that of the checkpoint; fails with a list of what differs. */
tn_status resume_compare(run *r);
/* Gives the state of the checkpoint to the objects. */
tn_status resume_restore(run *r);
/* Stores where the training is in r->checkpoint. */
tn_status resume_keep(run *r);

/* ---- ranks.c: the processes of `tenon run`, or of another launcher ---- */

/* Joins the group of all processes that were started together with this one. */
tn_status ranks_join(run *r);
/* Decides the number of shards, and refuses settings that are not for several processes. */
tn_status ranks_check(run *r);
/* Makes the options of the loader by which this process gets its part of the batches. */
void ranks_loader(const run *r, char *out, size_t size);
/* Makes the state of a checkpoint that of this number of processes. */
tn_status ranks_resume(run *r);
/* Lets the processes train the model together. */
tn_status ranks_wrap(run *r);
/* As step_batch, for all parts of a batch that this process has, of the batch at `position` of the
 * epoch. The sums of the epoch then are those of all processes. */
tn_status ranks_batch(run *r, tn_pack *batch, int64_t position, double *loss);
/* Prepares the model for an evaluation; makes the score of the first process that of all. */
tn_status ranks_before_score(run *r);
tn_status ranks_score(const run *r, score *all);
/* Returns the signal that asks to stop, 0 if there was none. All processes get the same answer. */
int ranks_asked(run *r);
/* Returns whether this process writes files and progress. */
static inline bool ranks_first(const run *r)
{
    return r->rank == 0;
}
void ranks_leave(run *r);

/* ---- signals.c ---- */

/* Handles SIGINT, SIGTERM and SIGHUP, unless that is ignored: the first one asks to stop, a second
 * SIGINT or SIGTERM ends the process. A write to a pipe that nobody reads becomes a failure. */
void signals_watch(void);
/* Gives these signals their default actions, in a child process. */
void signals_unwatch(void);
/* Returns whether an exit status is that of a run that such a signal stopped. */
bool signals_stopped(int code);
/* Returns the signal that asks to stop, 0 if there was none. */
int signals_asked(void);

/* ---- left_out.c ---- */

/* Begin and end to write each message of a loader about a sample that it left out only once. */
void left_out_watch(void);
void left_out_end(void);

/* ---- report.c's use (record.c) ---- */

tn_status record_open(run *r);
tn_status record_step(run *r, double loss);
tn_status record_epoch(run *r, int64_t epoch, const score *train, const score *val);

/* Seconds by a clock that never goes back. */
double run_clock(void);

#endif
