"""The L1 support vector machine on approximate extreme points, certified on all samples."""

from numbers import Integral
from typing import Annotated

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from solvers.common.status import CONVERGED, LIMIT, TIMEOUT
from solvers.estimators.parameters import Count, Positive, Switch, parameter, with_parameters
from solvers.estimators.polishing import polisher_of
from solvers.estimators.reduced_training import (
    ReducedPath,
    Reduction,
    Trainer,
    certify,
    fit_status_of,
    on_all_samples,
    text_of_all,
    weights_of_fit,
)
from solvers.estimators.smosvc import SMOSVC
from solvers.estimators.training_input import check_ascending, check_path_input, detached
from solvers.kernels.functions import GRAM
from solvers.multiclass import sort_by_class, strategy_of, without
from solvers.reduction.representatives import derive_rs, require_positive

# Attributes of a trained `Trainer` that are those of the estimator, too.
_ADOPTED = (
    *("classes_", "dual_coef_", "intercept_", "n_support_", "support_vectors_", "n_iter_", "objective_"),
    *("_kernel", "_gamma", "_callable", "_calibrated", "_normalised"),
)


@with_parameters
class AESVC(SMOSVC):  # numpydoc ignore=PR02
    """Support vector machine on approximate extreme points (AESVM).

    Each class is reduced to representatives, which are samples with weights. Every other sample is a convex
    combination of representatives in the space of the kernel, up to a squared distance of `epsilon`. `SMOSVC`
    trains on the representatives. The model is an approximation, and `gap_` says how good it is on all
    samples: usually above `tol`, so that `converged_` is false. The set depends on the kernel but not on C:
    `fit_path` derives it once.

    Parameters
    ----------
    C : float
        Penalty of the slacks, finite.
    loss : {"l1"}
        The hinge loss C Σ ξ_i.
    tol : float
        Largest violation and gap of the reduced problem, as in `SMOSVC`. `converged_` compares it to `gap_`.
    epsilon : float
        Largest squared distance of a sample from its combination. If it is at least all squared distances,
        only samples on the smallest ball around each block remain, and `stopping_` says so.
    P : int
        Largest number of samples of a part, into which a class is split first.
    V : int
        Largest number of samples of a block, into which a part is split; from 2 to `P`.
    first_level : {"fls2", "fls1"}
        How parts are split off: the nearest half of the samples ("fls2"), or consecutive samples ("fls1").
    repair : bool
        Merge equal samples of a class first, and enforce `epsilon` for each sample. If false, the steps are
        those of the paper, whose errors may exceed `epsilon`.
    certify : {"auto", "exact"}
        Lower bound of the optimum on all samples: from the representatives and, for "auto", from all samples
        only where that takes at most as many kernel values as the reduction and the training.
    polish : int
        Largest number of rounds that train a large subproblem on all samples, from the weights of the
        representatives. They end as soon as its gap is at most `tol`. Subproblems of at most 3,000 samples,
        and those of other kernels than "rbf", are trained on all samples from scratch. 0: no such training.
    max_seconds : float or None
        Limit of the wall time of `fit`, in seconds; None for no limit. The reduction counts, but is not
        interrupted. After the limit no gap is computed.

    Attributes
    ----------
    representatives_ : int64 ndarray of shape (n_representatives_,)
        Rows of the representatives, ascending.
    beta_ : ndarray of shape (n_representatives_,)
        Weights of the representatives. Their sum is that of the sample weights.
    n_representatives_ : int
        Number of representatives.
    representation_error_ : float
        Largest squared distance of a sample from its combination.
    gap_, duality_gap_ : float
        Upper bound on (F − F*)/F, with the objective F of the model on all samples and its optimum F*: the
        largest of the subproblems. NaN if `max_seconds` ended the training.
    gap_reduced_ : float
        Gap of the reduced problem, as `gap_` of `SMOSVC`.
    converged_ : bool
        Whether `gap_` ≤ `tol`.
    fit_status_ : int
        0 exactly if `converged_`. 6: the reduced problem is solved to `tol`, but `gap_` exceeds it. The other
        numbers are those of the reduced problem or, with `polish`, of the training on all samples.
    objective_ : float
        Dual objective of the reduced problem, as in `SMOSVC`. With `polish`, that of the problem on all
        samples.
    n_kernel_evals_ : int
        Kernel values of the reduction and the training, without those of the bounds.
    reduction_seconds_ : float
        Wall time of the reduction, in seconds.
    certificate_seconds_ : float
        Wall time of the bounds on all samples, in seconds. 0 with `polish`, which yields them itself.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample, a label or a weight is not valid, or the kernel is not positive
        semidefinite.
    MemoryError
        By `fit`: the training would not fit into memory.

    References
    ----------
    M. Nandan, P. P. Khargonekar and S. S. Talathi (2014), Fast SVM training using approximate extreme points,
    Journal of Machine Learning Research 15. The bounds on all samples are not in the paper.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import AESVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AESVC(C=4.0, gamma=0.05, epsilon=1e-3).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    >>> model.n_representatives_ < 100
    True
    """

    C: Positive = parameter(default=1.0, kw_only=False)
    loss: Annotated[str, StrOptions({"l1"})] = "l1"
    epsilon: Positive = 1e-3
    P: Count = 100_000
    V: Annotated[int, Interval(Integral, 2, None, closed="left")] = 1_000
    first_level: Annotated[str, StrOptions({"fls1", "fls2"})] = "fls2"
    repair: Switch = True
    certify: Annotated[str, StrOptions({"auto", "exact"})] = "auto"
    polish: Annotated[int, Interval(Integral, 0, None, closed="left")] = 0

    def prefers_gram(self, n_samples: int, n_features: int) -> bool:
        """Return whether `fit_path` gains from a Gram matrix that the caller shares between calls.

        Parameters
        ----------
        n_samples : int
            Number of training samples.
        n_features : int
            Number of columns of the feature matrix.

        Returns
        -------
        bool
            Always False: blocks need a small part of the matrix only.
        """
        return False

    def _validate_params(self):
        """Raise if a parameter is not valid, or if parameters do not fit together."""
        super()._validate_params()
        if self.V > self.P:
            raise ValueError(
                f"V={self.V}, P={self.P}: expected V <= P. Lower V to at most {self.P}, or raise P"
            )

    def fit_path(self, X, y, Cs, sample_weight=None, *, check_finite=True):
        """Train for every C of an ascending path, on one set of representatives.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            Training samples, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        Cs : array-like of shape (n_C,)
            Values of C, ascending.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples. Sample i has the penalty C · sample_weight[i]. A sample with a weight of 0
            or less is left out.
        check_finite : bool, default=True
            Whether to search a precomputed matrix for values that are not finite.

        Returns
        -------
        solvers.estimators.reduced_training.ReducedPath
            Trained models, one for every C, with the attributes of the reduction and gaps on all samples.

        Raises
        ------
        ValueError
            A parameter, a sample, a label or Cs is not valid, or kernel values are not finite.
        MemoryError
            The training would not fit into memory.
        """
        model = detached(self)
        model._validate_params()
        Cs = check_ascending(Cs)
        X, labels = check_path_input(model, X, y, check_finite)
        reduction = model._reduce(X, labels, sample_weight, Cs)
        trainer = model._trainer(reduction)
        trained = trainer.fit_path(*reduction.samples, Cs, reduction.found.beta, check_finite=False)
        (solution,) = trainer.solutions
        if self.polish:
            polisher = polisher_of(trainer, reduction, solution.weights, Cs, self.polish)
            fitted = polisher.fit_path(X, labels, Cs, reduction.weights, check_finite=False)
            gaps, seconds = fitted.duality_gap_[:, None], 0.0
        else:
            gaps, seconds = certify(
                *(reduction, solution.weights, solution.intercepts, Cs, self.certify == "exact"),
                *(trained.n_kernel_evals_, 1e6 * self.cache_size),
            )
            fitted = on_all_samples(trained, reduction, solution)
        return ReducedPath(fitted, reduction, trained, gaps, seconds, float(self.tol))

    def _reduce(self, X, y, sample_weight, Cs):
        """Derive the representatives, and set `class_weight_`.

        Parameters
        ----------
        X : {ndarray, CSR}
            Validated samples, or the Gram matrix.
        y : ndarray of shape (n_samples,)
            Label of each sample.
        sample_weight : array-like of shape (n_samples,) or None
            Weights as the user passed them.
        Cs : ndarray of shape (n_C,)
            Values of C.

        Returns
        -------
        Reduction
            Samples, weights and representatives.
        """
        classes, rows, class_start = sort_by_class(y)
        self.class_weight_: np.ndarray = self._weights_of_classes(classes, y)
        weights = self._weights_of_samples(sample_weight, rows, class_start)
        if weights is None:
            weights = np.ones(rows.size)
        elif not (weights > 0.0).all():
            without(rows, class_start, weights <= 0.0, classes)  # raises if a class has no weight
            weights = np.maximum(weights, 0.0)
        if not (weights == 1.0).all():
            self._check_weights(weights[weights > 0.0], np.append(Cs, 1.0), sample_weight)
        kernel, source = self._resolve_kernel(X, weights > 0.0)
        require_positive(kernel)
        code = np.empty(rows.size, np.int64)
        code[rows] = np.repeat(np.arange(classes.size), np.diff(class_start))
        found = derive_rs(
            source,
            code,
            kernel,
            float(self.epsilon),
            P=self.P,
            V=self.V,
            first_level=self.first_level,
            repair=self.repair,
            sample_weight=weights,
            n_jobs=self.n_jobs,
        )
        chosen = X[np.ix_(found.rows, found.rows)] if self.kernel == "precomputed" else X[found.rows]
        return Reduction(
            (chosen, y[found.rows]),
            source,
            kernel,
            code,
            weights,
            found,
            strategy_of(self.multiclass, classes.size),
        )

    def _trainer(self, reduction):
        """Return the estimator that trains on the representatives.

        Parameters
        ----------
        reduction : Reduction
            Representatives.

        Returns
        -------
        Trainer
            Estimator with the parameters of this one, except those that the reduction has applied.
        """
        names = Trainer._get_param_names()
        params = {name: getattr(self, name) for name in names}
        params |= {"class_weight": None, "probability": False, "verbose": False}
        if reduction.kernel.kind != GRAM:
            params["gamma"] = reduction.kernel.gamma
        return Trainer(**params)

    def _fit(self, X, y, sample_weight, started):
        """Train on representatives of all samples.

        Parameters
        ----------
        X : {array-like, CSR}
            Training samples.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of C, one for each sample. None means 1.
        started : float
            Time on `solvers.common.clock.clock` from which `max_seconds` counts.
        """
        X, y = self._check_training_samples(X, y)
        Cs = np.array([float(self.C)])
        reduction = self._reduce(X, y, sample_weight, Cs)
        found = reduction.found
        trainer = self._trainer(reduction)
        last = getattr(self, "_last", None)
        if self.warm_start and last is not None:
            trainer._last = last
        trainer._fit(*reduction.samples, found.beta, started)
        if self.warm_start:
            self._last = trainer._last
        self.representatives_: np.ndarray = found.rows
        self.beta_: np.ndarray = found.beta
        self.n_representatives_: int = found.rows.size
        self.representation_error_: float = float(found.errors.max())
        self.reduction_seconds_: float = found.seconds
        self.gap_reduced_: float = trainer.gap_
        evaluations = trainer.n_kernel_evals_ + found.n_kernel_evals
        is_out_of_time, polished = trainer.fit_status_ == TIMEOUT, CONVERGED
        left = -1 if self.max_iter == -1 else max(0, int(self.max_iter - trainer.n_iter_.sum()))
        if self.polish and left and not is_out_of_time:
            weights, _ = weights_of_fit(trainer, reduction)
            polisher = polisher_of(trainer, reduction, weights, Cs, self.polish)
            polisher.max_iter = left
            polisher._fit(X, y, reduction.weights, started)
            self._adopt(polisher)
            self.support_: np.ndarray = polisher.support_
            self.n_iter_ = trainer.n_iter_ + polisher.n_iter_
            self.n_kernel_evals_: int = evaluations + polisher.n_kernel_evals_
            gaps, self.certificate_seconds_ = np.array([polisher.gap_]), 0.0
            polished = polisher.fit_status_
        else:
            self._adopt(trainer)
            self.support_ = found.rows[trainer.support_].astype(trainer.support_.dtype)
            self.n_kernel_evals_ = evaluations
            gaps, self.certificate_seconds_ = np.array([np.nan]), 0.0
            if not is_out_of_time:
                weights, intercepts = weights_of_fit(trainer, reduction)
                (gaps,), self.certificate_seconds_ = certify(
                    *(reduction, weights, intercepts, Cs, self.certify == "exact"),
                    *(trainer.n_kernel_evals_, 1e6 * self.cache_size),
                )
        self._samples = X if trainer._samples is not None else None
        self.gap_ = self.duality_gap_ = float(gaps.max())
        self.converged_ = bool((gaps <= self.tol).all())
        self.fit_status_ = fit_status_of(self.converged_, trainer.fit_status_, polished)
        self.stopping_ = text_of_all(trainer.stopping_, gaps, self.tol, found, polished)
        if self.verbose:
            print(f"[{type(self).__name__}] {self.n_iter_.sum()} iterations; {self.stopping_}")

    def _adopt(self, trained):
        """Take over the coefficients of another estimator.

        Parameters
        ----------
        trained : SMOSVC
            Estimator that was trained on the representatives or on all samples.
        """
        for name in _ADOPTED:
            setattr(self, name, getattr(trained, name))

    def _warn(self):
        """Warn if the reduced problem is not solved to its tolerance, or if a limit ended the training."""
        if not self.gap_reduced_ <= self.tol or self.fit_status_ in (LIMIT, TIMEOUT):
            super()._warn()

    def _path_solver(self):
        """Raise, because a path of this estimator is trained by `SMOSVC`.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no block solver and no path_grid. Call fit_path, which "
            "trains SMOSVC on the representatives"
        )
