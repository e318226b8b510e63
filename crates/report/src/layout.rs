//! Where the parts of a figure lie, in units of the drawing.

use crate::figure::Figure;

/// Room for a letter, a little more than any usual font takes at this size: labels must never overlap.
pub(crate) const LETTER: f64 = 7.5;
pub(crate) const LEFT: f64 = 72.0;
const RIGHT: f64 = 18.0;
pub(crate) const LINE: f64 = 20.0;
const FOOT: f64 = 48.0;

/// Where things are, in units of the drawing.
pub(crate) struct Layout {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Layout {
    /// Only the width matters to places along x.
    pub(crate) fn new(figure: &Figure, top: f64) -> Self {
        let (width, plot) = if figure.wide { (1240.0, 210.0) } else { (610.0, 380.0) };
        Layout { width, height: top + plot + FOOT, top, bottom: top + plot }
    }

    pub(crate) fn right(&self) -> f64 {
        self.width - RIGHT
    }

    pub(crate) fn x(&self, figure: &Figure, value: f64) -> Option<f64> {
        figure.x.place(value).map(|place| LEFT + place.clamp(0.0, 1.0) * (self.right() - LEFT))
    }

    pub(crate) fn y(&self, figure: &Figure, value: f64) -> Option<f64> {
        // What lies beyond the axis leaves the plot, so that it cannot be taken for a value on its edge.
        figure.y.place(value).map(|place| self.bottom - place.clamp(-1.0, 2.0) * (self.bottom - self.top))
    }
}
