"""The judge's side of L2: which sessions there are with a candidate, and what each must show.

One session goes through the cases of the plan, the thorough one first, where contents change in place. Three more make
its kernels fail, one way each. Every session is a fresh contained process, and ends with it. Where the candidate's time
is up before all required calls are made, or the interpreter lacks what it uses, the examiner is left `undecided`.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from kernelgen.ladder.containment.limits import Limits
from kernelgen.ladder.correctness import checks, faults
from kernelgen.ladder.correctness.calls import HUNG, Calls, Patience, Stopped
from kernelgen.ladder.correctness.checks import Expected, Outputs
from kernelgen.ladder.correctness.examine import UNWRITTEN, Examiner
from kernelgen.ladder.correctness.plan import Case, Plan, size_of
from kernelgen.ladder.results import Fault
from kernelgen.ladder.server import Server, Session
from kernelgen.ladder.subject import Subject

JOB = "kernelgen.ladder.correctness.caller:serve"
FAULTY_CASES = 3
MOST_CONFIGURATIONS = 256
# of the budget, what one timed shape may take
TIMED_SHARE = 0.5
INPUTS = "inputs"


class Judge:
    """One verdict in the making."""

    def __init__(
        self,
        subject: Subject,
        examiner: Examiner,
        server: Server,
        device: str,
        *,
        timeout_s: float,
        limits: Limits,
        library: Path | None,
    ) -> None:
        self.notes: list[str] = []
        self.configurations = 1
        self._longest_s = 0.0
        self._pace = (0, 0.0)
        self._subject, self._examiner = subject, examiner
        self._server, self._device, self._limits, self._library = server, device, limits, library
        self._patience = Patience(timeout_s)

    def judge(self, plan: Plan) -> None:
        """Make every check of the plan; what was found lies in the examiner."""
        with self._server.open(JOB, limits=self._limits) as session:
            calls = self._calls(session)
            try:
                if self._load(calls, session):
                    self._go_through(calls, plan)
            except Stopped as stopped:
                if stopped.slow:
                    self._too_slow(stopped)
                else:
                    self._examiner.add(stopped.fault)
            self._reached_out(session)
        if self._examiner.found() or self._examiner.undecided:
            return
        if not self._examiner.counted:
            self.notes.append(f"no kernel was made to fail: launches of {self._subject.dsl} cannot be stood around")
            return
        for mode in (faults.RAISE, faults.SKIP, faults.SPOIL):
            self._break(plan.thorough, mode)

    def _calls(self, session: Session) -> Calls:
        """The calls of a session."""
        above = f"{self._subject.preamble}\n" if self._subject.preamble else ""
        return Calls(session, self._patience, above.count("\n"))

    def _too_slow(self, stopped: Stopped) -> None:
        """Time is up before the required calls are made."""
        limit = f"{self._patience.seconds:g} s"
        self._examiner.undecided = f"the required calls take longer than the {limit} they have; {stopped.fault.reason}"

    def _reached_out(self, session: Session) -> None:
        """What the process tried that it may not, and was refused."""
        attempts = session.close().attempts
        if attempts:
            reason = f"the candidate tried to {', to '.join(attempts)}, which it may not"
            self._examiner.add(Fault("process.reached_out", reason))

    def _load(self, calls: Calls, session: Session) -> bool:
        """Load the candidate; whether that went well."""
        subject, library = self._subject, self._library
        if library is not None:
            shutil.copy(library, session.folder / library.name)
        self._examiner.counted = calls.prepare(subject.dsl, self._device, subject.goal.compute_capability)
        calls.doing = "at its import"
        answer = calls.ask(
            "load",
            source=subject.source if library is None else "",
            preamble=subject.preamble,
            entry_point=subject.entry_point,
            library=library.name if library else "",
        )
        return self._examiner.ran(answer, "at its import", call=False)

    def _go_through(self, calls: Calls, plan: Plan) -> None:
        """All cases, as long as not enough was found."""
        self._thorough(calls, plan.thorough)
        for case in plan.cases:
            self._case(calls, case)
        if plan.budget_s is None:
            return
        until = time.monotonic() + plan.budget_s
        left = [case.shape for case in plan.timed]
        # the smallest one, where it is small enough; half of the budget is for other configurations
        for case in plan.timed[:1]:
            if self._estimate_s(case) <= plan.budget_s * TIMED_SHARE:
                self._case(calls, case)
                left.remove(case.shape)
        if left:
            self.notes.append(f"timed shapes not checked on a CPU: {', '.join(left)}")
        self._configure(calls, plan, until)

    def _estimate_s(self, case: Case) -> float:
        """How long a call may take: as long as the largest one so far, by bytes."""
        nbytes, seconds = self._pace
        return seconds * max(1.0, size_of(self._subject.goal, case) / nbytes) if nbytes else 0.0

    def _thorough(self, calls: Calls, case: Case) -> None:
        """One shape and kind, called on changing contents, repeated, with several answers alive."""
        examiner = self._examiner
        first, second = examiner.expected(case), examiner.expected(case)
        shared = calls.reveal(INPUTS, first.inputs, case.dims, first.specs)
        one, found = examiner.answer(calls, shared, first, "first", settle=True)
        examiner.add(*found)
        if one is None or found:
            return
        calls.change(shared, second.inputs)
        two, found = examiner.answer(calls, shared, second, "second")
        if two is not None:
            examiner.add(*self._stale(calls, second, one, two))
        examiner.add(*found)
        _, again = calls.collect(shared, "first", first.specs, UNWRITTEN[0])
        changed = checks.differing(first.specs, one, again)
        if changed is not None:
            reason = f"{case.place}: a later call changed an answer that had been given: {changed}"
            examiner.add(Fault("correctness.overwritten", reason))
        if two is None or found or examiner.undecided:
            return
        shared.write(second.inputs)
        three, found = examiner.answer(calls, shared, second, "third", unwritten=UNWRITTEN[1])
        if three is not None:
            self._repeats(second, two, three)
        examiner.add(*found)
        for name in ("first", "second", "third"):
            calls.ask("forget", keep=name)

    def _stale(self, calls: Calls, second: Expected, one: Outputs, two: Outputs) -> list[Fault]:
        """Why a second answer is wrong where the first was right: kept from before, or no longer computed."""
        wrong = self._examiner.values(second, two)
        if not wrong or all(fault.check == "correctness.uninitialised" for fault in wrong):
            return []
        what = wrong[-1].reason
        if checks.differing(second.specs, one, two) is None:
            return [Fault("correctness.stale", f"{what}; it is the answer to what the same tensors held before")]
        elsewhere = calls.reveal(f"{INPUTS} elsewhere", second.inputs, second.case.dims, second.specs)
        moved, _ = self._examiner.answer(calls, elsewhere, second, "moved")
        if moved is not None and not self._examiner.values(second, moved):
            reason = f"{what}; at other addresses the answer is right: something was kept of what they held before"
            return [Fault("correctness.stale", reason)]
        return [Fault("correctness.sniffing", f"{what}; the first call of this shape and kind was right")]

    def _repeats(self, expected: Expected, two: Outputs, three: Outputs) -> None:
        """Two answers to the same inputs, with other unwritten memory, must be the same."""
        differs = checks.differing(expected.specs, two, three)
        if differs is None:
            return
        place = expected.case.place
        left = checks.unwritten(expected, three, UNWRITTEN) or checks.unwritten(expected, two, UNWRITTEN)
        if left is not None:
            self._examiner.add(Fault("correctness.uninitialised", f"{place}: {left}", detail=differs))
        elif self._subject.goal.deterministic:
            reason = f"{place}: two runs on the same inputs disagree: {differs}"
            self._examiner.add(Fault("correctness.not_deterministic", reason))

    def _case(self, calls: Calls, case: Case) -> None:
        """One call on fresh inputs, unless enough has been found."""
        examiner = self._examiner
        if examiner.faulty >= FAULTY_CASES or examiner.undecided:
            return
        began = time.monotonic()
        expected = examiner.expected(case)
        shared = calls.reveal(INPUTS, expected.inputs, case.dims, expected.specs)
        unwritten = UNWRITTEN[examiner.examined % len(UNWRITTEN)]
        _, found = examiner.answer(calls, shared, expected, "answer", unwritten=unwritten)
        examiner.add(*found)
        took_s = time.monotonic() - began
        self._longest_s = max(self._longest_s, took_s)
        self._pace = max(self._pace, (size_of(self._subject.goal, case), took_s))

    def _configure(self, calls: Calls, plan: Plan, until: float) -> None:
        """The smoke shapes again with each other configuration that the interpreter can choose, within the budget."""
        smoke = {case.shape: case for case in (plan.thorough, *plan.cases) if _is_plain(case, plan)}
        while self.configurations < min(self._examiner.choices, MOST_CONFIGURATIONS):
            if (
                time.monotonic() + self._longest_s * len(smoke) > until
                or self._examiner.faulty
                or self._examiner.undecided
            ):
                break
            calls.ask("choose", choice=self.configurations)
            for case in smoke.values():
                self._case(calls, case)
            self.configurations += 1

    def _break(self, case: Case, mode: str) -> None:
        """Call with kernels that fail: raising must end the call, computing nothing must spoil the answer."""
        with self._server.open(JOB, limits=self._limits) as session:
            calls = self._calls(session)
            try:
                if self._load(calls, session):
                    self._call_broken(calls, self._examiner.expected(case), mode)
            except Stopped as stopped:
                if stopped.fault.check == HUNG:
                    self._too_slow(stopped)
                return  # it did not outlive the failing of its kernels: that is all that was asked

    def _call_broken(self, calls: Calls, expected: Expected, mode: str) -> None:
        place = expected.case.place
        shared = calls.reveal(INPUTS, expected.inputs, expected.case.dims, expected.specs)
        calls.ask("launches", mode=mode)
        said = calls.call(shared, "answer", UNWRITTEN[0])
        if said.text("failure") is not None:
            return
        if mode == faults.RAISE:
            reason = f"{place}: the call returned though every kernel launch raised: nothing may stand in for a kernel"
            self._examiner.add(Fault("correctness.fallback", reason))
            return
        form, got = calls.collect(shared, "answer", expected.specs, UNWRITTEN[0])
        if checks.form_faults(expected, form.text("returned"), form.records("forms"), self._device):
            return
        if not self._examiner.values(expected, got):
            how = "did not run" if mode == faults.SKIP else "wrote NaN"
            reason = f"{place}: the answer was right though every kernel {how}: it does not come from the kernels"
            self._examiner.add(Fault("correctness.ignored_kernel", reason))


def _is_plain(case: Case, plan: Plan) -> bool:
    """Whether it is a smoke shape with plain inputs."""
    return case.group == "smoke" and case.kind == plan.thorough.kind
